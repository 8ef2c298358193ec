#include "tutti/cli/bench/comm_tune.h"

#include <gtest/gtest.h>

#include <algorithm>

#include <filesystem>
#include <fstream>
#include <mutex>
#include <numeric>
#include <set>

#include "tutti/base/error.h"
#include "tutti/base/expect_text.h"
#include "tutti/base/scratch_directory.h"
#include "tutti/cli/bench/comm_buffers.h"
#include "tutti/cli/bench/comm_measurement.h"
#include "tutti/cli/bench/comm_turns.h"
#include "tutti/cli/job/selection_file.h"
#include "tutti/comm/algorithm/algorithm.h"
#include "tutti/comm/transport/inproc/thread_ranks.h"

namespace tutti::cli {
namespace {

using comm::Collective;

TEST(CommTune, MeasuresAllThatDoNotRefuseAndAllRanksGetTheSameTable) {
  std::mutex lock;
  std::set<std::string> tables;
  comm::run_ranks(3, [&](comm::Communicator& communicator) {
    const Tuning tuning = tune(
        communicator, {.kinds = {Collective::allreduce, Collective::broadcast, Collective::barrier},
                       .sizes = {12, 1200},
                       .iterations = 3,
                       .warmup = 1});
    const std::lock_guard hold(lock);
    tables.insert(comm::Selection(tuning.lines).to_string());
    comm::Task task;
    task.kind = Collective::allreduce, task.ranks = 3;
    const auto does = [&](const comm::Algorithm* a) { return refusal_of(*a, task).empty(); };
    const auto doing = std::ranges::count_if(comm::algorithms(), does);
    task.kind = Collective::barrier;
    const auto barriers = std::ranges::count_if(comm::algorithms(), does);  // for one size
    const auto timed = [&](Collective kind) {
      return std::ranges::count(tuning.times, kind, &AlgorithmTime::kind);
    };
    EXPECT_EQ(timed(Collective::allreduce), 2 * doing);
    EXPECT_EQ(timed(Collective::barrier), barriers);
    EXPECT_EQ(tuning.measured.size(), communicator.rank() == 0 ? tuning.times.size() : 0);
    // Calls that need the tree's order have a line of their own; a broadcast has one for all.
    const auto has_line = [&](Collective kind, std::optional<bool> reproducible) {
      return std::ranges::any_of(tuning.lines, [&](const auto& line) {
        return line.kind == kind && line.reproducible == reproducible;
      });
    };
    EXPECT_TRUE(has_line(Collective::allreduce, true));
    EXPECT_TRUE(has_line(Collective::allreduce, false));
    EXPECT_TRUE(has_line(Collective::broadcast, std::nullopt));
    EXPECT_TRUE(has_text(tuning_report(tuning),
                         communicator.rank() == 0 ? "prices: comm/cost/cost.h" : "no prices"));
  });
  EXPECT_EQ(tables.size(), 1u);
}

TEST(CommTune, ATableFromAFileIsTaken) {
  const ScratchDirectory scratch;
  const auto path = scratch.path() / "selection.txt";
  std::ofstream(path) << "allreduce 2 node 4096 no ring\n";
  comm::run_ranks(2, [&](comm::Communicator& communicator) {
    use_selection(communicator, path.string());
    std::vector<float> values(2000);
    const auto algorithm = [&](size_t count, bool reproducible) {
      return communicator
          .plan({.kind = Collective::allreduce,
                 .count = count,
                 .output = values.data(),
                 .reproducible = reproducible})
          ->algorithm();
    };
    EXPECT_EQ(algorithm(1024, false), "ring");
    EXPECT_NE(algorithm(1024, true), "ring");
    EXPECT_NE(algorithm(1025, false), "ring");
  });
  std::ofstream(path) << "allreduce 2 node 4096 no ring\nallreduce 2 node 4096 ring\n";
  const auto take = [&] {
    comm::run_ranks(
        2, [&](comm::Communicator& communicator) { use_selection(communicator, path.string()); });
  };
  EXPECT_TRUE(throws<ConfigError>({path.string() + ":2: expected"}, take));
  std::filesystem::remove(path);
  EXPECT_THROW(take(), ConfigError);
}

TEST(CommTune, LatencyMovesMessagesOfAnySize) {
  comm::run_ranks(3, [](comm::Communicator& communicator) {
    for (const size_t bytes : {0, 1, 70000})
      EXPECT_GT(bench_latency(communicator, bytes, 1, 5), 0) << bytes;
  });
  comm::run_ranks(1, [](comm::Communicator& communicator) {
    EXPECT_THROW(bench_latency(communicator, 8, 0, 1), ConfigError);
  });
}

TEST(CommBuffers, TheCheckSeesWhatIsWrongOnAnyRankInAnyType) {
  for (const comm::Element element : {comm::Element::f32, comm::Element::f64, comm::Element::bf16,
                                      comm::Element::f16, comm::Element::i8, comm::Element::i32})
    for (const Collective kind :
         {Collective::allreduce, Collective::broadcast, Collective::allgather,
          Collective::reduce_scatter, Collective::all_to_all, Collective::gather})
      comm::run_ranks(2, [&](comm::Communicator& communicator) {
        CommBuffers buffers(communicator, kind, element, comm::ReduceOp::sum,
                            100 * comm::size_of(element));
        const auto operation = communicator.plan(buffers.spec());
        const auto run = [&] { operation->run(); };
        EXPECT_EQ(buffers.count_wrong(run, 0), 0u);
        // A call that does nothing does not leave an earlier call's answer. (The root of a
        // broadcast has its own.)
        const size_t outputs = comm::extent_of(buffers.task()).output;
        std::vector<size_t> all = communicator.allgather_value(
            kind == Collective::broadcast && communicator.rank() == 0 ? size_t{0} : outputs);
        EXPECT_EQ(buffers.count_wrong([] {}, 1),
                  std::accumulate(all.begin(), all.end(), size_t{0}));
        const int liar = kind == Collective::gather ? 0 : 1;
        const auto spoil = [&] {
          run();
          communicator.barrier();
          if (communicator.rank() == liar)
            buffers.output()[7 * comm::size_of(element)] ^= std::byte{1};
        };
        EXPECT_EQ(buffers.count_wrong(spoil, 2), 1u);
      });
}

TEST(CommTurns, EveryCallEachTurnForwardAndBackward) {
  comm::run_ranks(1, [](comm::Communicator& communicator) {
    std::string order;
    const std::vector<std::function<void()>> calls = {[&] { order += 'a'; }, [&] { order += 'b'; }};
    const auto seconds = time_in_turns(
        communicator, calls, {.warmup = 1, .iterations = 3, .before = [&] { order += '.'; }});
    EXPECT_EQ(order, ".b.a.a.b.b.a.a.b");
    ASSERT_EQ(seconds.size(), 2u);
    EXPECT_EQ(seconds[0].size(), 3u);
  });
  EXPECT_EQ(median({3, 1, 2}), 2);
}

AlgorithmTime allreduce(size_t bytes, const char* algorithm, bool reproducible, double seconds) {
  return {comm::Collective::allreduce, bytes, algorithm, reproducible, seconds};
}

comm::Task task_of(comm::Collective kind, size_t count, bool ordered) {
  comm::Task task;
  task.kind = kind, task.ranks = 4, task.count = count, task.ordered = ordered;
  return task;
}

// recursive_doubling is the fastest for small sizes, then ring; among algorithms that keep the
// tree, recursive_halving is the fastest for large sizes.
std::vector<AlgorithmTime> crossing() {
  return {allreduce(1 << 20, "ring", false, 100e-6),
          allreduce(1 << 20, "recursive_halving", true, 150e-6),
          allreduce(1 << 20, "recursive_doubling", true, 400e-6),
          allreduce(1 << 10, "ring", false, 9e-6),
          allreduce(1 << 10, "recursive_halving", true, 6e-6),
          allreduce(1 << 10, "recursive_doubling", true, 3e-6),
          allreduce(1 << 14, "ring", false, 20e-6),
          allreduce(1 << 14, "recursive_halving", true, 12e-6),
          allreduce(1 << 14, "recursive_doubling", true, 10e-6)};
}

TEST(Tuning, TheFastestOfEachSizeIsChosenAndTheTreeSeparately) {
  const comm::Selection table(fastest_lines(crossing(), 4, true));
  const auto choose = [&](size_t bytes, bool reproducible) {
    return table.choose(task_of(comm::Collective::allreduce, bytes / 4, reproducible), 4);
  };
  for (const size_t bytes : {64, 1 << 10, 1 << 14, 1 << 17}) {
    EXPECT_EQ(choose(bytes, false), "recursive_doubling") << bytes;
    EXPECT_EQ(choose(bytes, true), "recursive_doubling") << bytes;
  }
  for (const size_t bytes : {(1 << 17) + 4, 1 << 20, 1 << 28}) {
    EXPECT_EQ(choose(bytes, false), "ring") << bytes;
    EXPECT_EQ(choose(bytes, true), "recursive_halving") << bytes;
  }
}

TEST(Tuning, LinesAreForTheRanksAndTheTopologyMeasured) {
  EXPECT_EQ(comm::Selection(fastest_lines(crossing(), 4, false)).to_string(),
            "allreduce           4  nodes        131072  no            recursive_doubling\n"
            "allreduce           4  nodes             *  no            ring\n"
            "allreduce           4  nodes        131072  yes           recursive_doubling\n"
            "allreduce           4  nodes             *  yes           recursive_halving\n");
}

TEST(Tuning, WhatOnlyMovesHasOneTable) {
  const std::vector<AlgorithmTime> times = {{comm::Collective::gather, 64, "binomial", true, 1e-6},
                                            {comm::Collective::gather, 64, "pairwise", true, 2e-6}};
  const auto lines = fastest_lines(times, 4, true);
  ASSERT_EQ(lines.size(), 1u);
  EXPECT_EQ(lines[0].reproducible, std::nullopt);
  EXPECT_EQ(lines[0].algorithm, "binomial");
}

TEST(Tuning, ATieGoesToTheAlgorithmBefore) {
  const auto lines = [](double second) {
    return fastest_lines(std::vector{allreduce(1 << 10, "pairwise", true, 10e-6),
                                     allreduce(1 << 10, "recursive_halving", true, 12e-6),
                                     allreduce(1 << 12, "pairwise", true, second),
                                     allreduce(1 << 12, "recursive_halving", true, 20e-6)},
                         4, true);
  };
  EXPECT_EQ(lines(20.5e-6).size(), 1u);
  EXPECT_EQ(lines(21e-6).size(), 2u);
}

TEST(Tuning, AnAlgorithmMayBeMissingAtASize) {
  const auto lines = fastest_lines(std::vector{allreduce(1 << 10, "ring", false, 1e-6),
                                               allreduce(1 << 12, "pairwise", true, 5e-6)},
                                   4, true);
  ASSERT_EQ(lines.size(), 3u);
  EXPECT_EQ(lines[0].algorithm, "ring");
  EXPECT_EQ(lines[0].bytes, 1u << 11);
  EXPECT_EQ(lines[1].algorithm, "pairwise");
  EXPECT_EQ(lines[2].reproducible, true);
  EXPECT_TRUE(fastest_lines({}, 4, true).empty());
}

}  // namespace
}  // namespace tutti::cli
