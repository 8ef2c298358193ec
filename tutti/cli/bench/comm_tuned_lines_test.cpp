#include "tutti/cli/bench/comm_tuned_lines.h"

#include <gtest/gtest.h>

namespace tutti {
namespace {

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
}  // namespace tutti
