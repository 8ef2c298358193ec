#include "tutti/comm/compress/compressed_reduction.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <map>
#include <mutex>

#include "tutti/base/error.h"
#include "tutti/base/rng.h"
#include "tutti/comm/codec/topk.h"
#include "tutti/comm/inproc/thread_ranks.h"

namespace tutti::comm {
namespace {

using Floats = std::vector<float>;

constexpr const char* kAll[] = {"bf16", "fp16", "int8", "onebit", "topk:0.01", "topk:0.3", "hitopk:0.05", "hitopk:0.3", "powersgd:1", "powersgd:4"};

// Of one rank's part, a function of its arguments alone.
Floats gradient(int step, int rank, size_t count, int part = 0) {
  Rng rng(static_cast<uint64_t>(step), Purpose::test, static_cast<uint64_t>(rank * 100 + part));
  Floats g(count);
  for (float& x : g) x = rng.normal();
  return g;
}

bool same_bits(const Floats& a, const Floats& b) { return a.size() == b.size() && (a.empty() || std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0); }

// One rank's share of a compressed reduction.
struct Job {
  struct Options {
    std::string method;
    size_t count = 0;
    int parts = 1;
    int ranks_per_node = 1;
    std::vector<MatrixBlock> matrices = {};
  };
  Job(Communicator& communicator, const Options& options)
      : c(communicator), count(options.count), groups(communicator, options.ranks_per_node), gradients(static_cast<size_t>(options.parts), Floats(options.count)) {
    spec.reduction.name = "bucket 2";
    spec.reduction.count = count;
    for (Floats& part : gradients) spec.reduction.parts.push_back(part.data());
    spec.matrices = options.matrices;
    spec.groups = &groups;
    plan(options.method);
  }
  void plan(const std::string& method) {
    spec.compression = parse_compression(method);
    layout = state_layout(c, spec);
    if (state.empty()) state.assign(layout.floats, 0.0f);
    spec.state = state;
    reduction.reset();
    reduction = plan_compressed(c, spec);
  }
  Floats run(int step) {
    for (size_t p = 0; p < gradients.size(); ++p) {
      const Floats g = gradient(step, c.rank(), count, static_cast<int>(p));
      std::ranges::copy(g, gradients[p].begin());
    }
    return run();
  }
  Floats run() {
    reduction->start();
    reduction->wait();
    return result();
  }
  Floats result() const { return {reduction->result(), reduction->result() + count}; }

  Communicator& c;
  size_t count;
  NodeGroups groups;
  std::vector<Floats> gradients;
  CompressedReductionSpec spec;
  StateLayout layout;
  Floats state;
  std::unique_ptr<CompressedReduction> reduction;
};

// The residuals of all ranks together, in double.
std::vector<double> all_residuals(Job& job) {
  Floats mine(job.count, 0.0f), state = job.state;
  release_residuals(job.layout, state, mine);
  std::vector<double> sum(mine.begin(), mine.end());
  job.c.sum(sum);
  return sum;
}

// Of every rank, compared on rank 0.
void expect_same_everywhere(Communicator& c, const Floats& result, const std::string& what) {
  Floats all(result.size() * static_cast<size_t>(c.size()));
  c.allgather(std::as_bytes(std::span(result)), std::as_writable_bytes(std::span(all)));
  for (int p = 0; p < c.size(); ++p)
    EXPECT_TRUE(same_bits(result, Floats(all.begin() + static_cast<std::ptrdiff_t>(static_cast<size_t>(p) * result.size()), all.begin() + static_cast<std::ptrdiff_t>((static_cast<size_t>(p) + 1) * result.size()))))
        << what << ": rank " << c.rank() << " and rank " << p;
}

// Everything given up to now is either in the results or in a residual.
void expect_nothing_lost(Communicator& c, Job& job, int steps, const std::string& what) {
  std::vector<double> given(job.count, 0.0), sent(job.count, 0.0);
  double largest = 1;
  for (int step = 0; step < steps; ++step) {
    for (int p = 0; p < c.size(); ++p)
      for (size_t part = 0; part < job.gradients.size(); ++part) {
        const Floats g = gradient(step, p, job.count, static_cast<int>(part));
        for (size_t i = 0; i < job.count; ++i) given[i] += g[i];
      }
    const Floats result = job.run(step);
    expect_same_everywhere(c, result, what);
    for (size_t i = 0; i < job.count; ++i) {
      sent[i] += result[i];
      largest = std::max(largest, std::fabs(static_cast<double>(result[i])));
    }
  }
  const std::vector<double> rest = all_residuals(job);
  double worst = 0;
  for (size_t i = 0; i < job.count; ++i) worst = std::max(worst, std::fabs(sent[i] + rest[i] - given[i]));
  EXPECT_LT(worst, 1e-6 * largest * steps * c.size()) << what;
}

std::vector<int> nodes_for(int ranks) { return ranks == 4 ? std::vector{1, 2, 4} : std::vector{1, ranks}; }

TEST(CompressedReduction, EveryRankGetsTheSameBitsAndNothingIsLost) {
  for (int ranks = 1; ranks <= 5; ++ranks)
    for (const size_t count : {0, 1, 3, 127, 3001})
      for (const char* method : kAll)
        for (const int ranks_per_node : std::string_view(method).starts_with("hitopk") ? nodes_for(ranks) : std::vector{1})
          run_ranks(ranks, [&](Communicator& c) {
            Job job(c, {.method = method, .count = count, .parts = 1 + ranks % 2, .ranks_per_node = ranks_per_node});
            expect_nothing_lost(c, job, 4, fmt::format("{}, {} of {} ranks, {} a node", method, count, ranks, ranks_per_node));
          });
}

TEST(CompressedReduction, AMillionElements) {
  for (const char* method : {"int8", "onebit", "topk:0.01", "hitopk:0.01", "powersgd:2"})
    run_ranks(4, [&](Communicator& c) {
      Job job(c, {.method = method, .count = 1000003, .ranks_per_node = 2});
      expect_nothing_lost(c, job, 1, method);
    });
}

// The first step, with no residual yet: within what the codecs may round.
TEST(CompressedReduction, TheSumIsRightWithinTheCodecsBounds) {
  const std::map<std::string, double> half_steps{{"bf16", 0x1p-9}, {"fp16", 0x1p-12}, {"int8", 1 / 254.0}, {"topk:1", 0}, {"hitopk:1", 0}};
  for (int ranks = 1; ranks <= 5; ++ranks)
    for (const auto& [method, half] : half_steps)
      run_ranks(ranks, [&, method = method, half = half](Communicator& c) {
        constexpr size_t kCount = 3001;
        Job job(c, {.method = method, .count = kCount, .ranks_per_node = ranks == 4 ? 2 : 1});
        const Floats result = job.run(0);
        Floats sum(kCount, 0.0f);
        double largest = 0, of_sum = 0;
        for (int p = 0; p < ranks; ++p) {
          const Floats g = gradient(0, p, kCount);
          double of_rank = 0;
          for (size_t i = 0; i < kCount; ++i) sum[i] += g[i], of_rank = std::max(of_rank, std::fabs(static_cast<double>(g[i])));
          largest += of_rank;
        }
        for (const float x : sum) of_sum = std::max(of_sum, std::fabs(static_cast<double>(x)));
        const double bound = 1.02 * half * (largest + of_sum) + 1e-6 * largest;
        double worst = 0;
        for (size_t i = 0; i < kCount; ++i) worst = std::max(worst, std::fabs(static_cast<double>(result[i]) - sum[i]));
        EXPECT_LE(worst, bound) << method << " " << ranks;
        if (half > 0) EXPECT_GT(worst, bound / 100) << method << " compresses nothing";
      });
}

// With the same gradient in every step, the mean of the results approaches the sum over ranks as 1 / steps.
TEST(CompressedReduction, TheMeanOverStepsConverges) {
  for (const char* method : {"int8", "onebit", "topk:0.1", "hitopk:0.1", "powersgd:4"})
    run_ranks(4, [&](Communicator& c) {
      constexpr size_t kCount = 900;
      Job job(c, {.method = method, .count = kCount, .ranks_per_node = 2});
      std::vector<double> total(kCount, 0.0);
      const auto distance = [&](int steps) {
        double squares = 0;
        for (size_t i = 0; i < kCount; ++i) {
          double dense = 0;
          for (int p = 0; p < 4; ++p) dense += gradient(3, p, kCount)[i];
          squares += std::pow(total[i] / steps - dense, 2);
        }
        return std::sqrt(squares);
      };
      double early = 0;
      for (int step = 1; step <= 200; ++step) {
        const Floats result = job.run(3);
        for (size_t i = 0; i < kCount; ++i) total[i] += result[i];
        if (step == 20 && c.rank() == 0) early = distance(step);
      }
      if (c.rank() == 0) EXPECT_LT(distance(200), 0.2 * early) << method;
    });
}

// Whole numbers are added without rounding, so that the order of the parts does not matter.
TEST(CompressedReduction, PartsAreAddedBeforeTheyAreEncoded) {
  for (const char* method : kAll)
    run_ranks(3, [&](Communicator& c) {
      Job several(c, {.method = method, .count = 500, .parts = 3, .ranks_per_node = 3}), one(c, {.method = method, .count = 500, .ranks_per_node = 3});
      for (int step = 0; step < 3; ++step) {
        for (size_t i = 0; i < 500; ++i) {
          float sum = 0;
          for (size_t p = 0; p < 3; ++p) sum += several.gradients[p][i] = std::round(100 * gradient(step, c.rank(), 500, static_cast<int>(p))[i]);
          one.gradients[0][i] = sum;
        }
        if (step == 0) EXPECT_TRUE(same_bits(several.run(), one.run())) << method;
      }
    });
}

TEST(CompressedReduction, ACheckpointContinuesWithTheSameBits) {
  for (const char* method : kAll)
    run_ranks(4, [&](Communicator& c) {
      const Job::Options options{.method = method, .count = 2000, .ranks_per_node = 2};
      const auto run = [&](Job& job, int step) {
        job.reduction->set_step(static_cast<uint64_t>(step));
        return job.run(step);
      };
      Job whole(c, options), first(c, options), second(c, options);
      for (int step = 1; step <= 4; ++step) run(whole, step), run(first, step);
      // What every rank reads from the file: the pieces of all.
      std::vector<SavedPiece> pieces;
      std::vector<Floats> memory;
      const std::vector<size_t> sizes = c.allgather_value(first.state.size());
      const size_t largest = *std::ranges::max_element(sizes);
      Floats mine(largest), everyone(largest * 4);
      std::ranges::copy(first.state, mine.begin());
      c.allgather(std::as_bytes(std::span(mine)), std::as_writable_bytes(std::span(everyone)));
      const auto layouts = [&](int p) {  // pieces of other ranks: their places are told as data
        std::vector<size_t> flat;
        for (const StatePiece& piece : first.layout.pieces) flat.insert(flat.end(), {piece.covers.begin, piece.covers.count});
        std::vector<size_t> from_all(flat.size() * 4);
        c.allgather(std::as_bytes(std::span(flat)), std::as_writable_bytes(std::span(from_all)));
        StateLayout layout;
        for (size_t i = 0; i < first.layout.pieces.size(); ++i)
          layout.add(first.layout.pieces[i].kind, {from_all[static_cast<size_t>(p) * flat.size() + 2 * i], from_all[static_cast<size_t>(p) * flat.size() + 2 * i + 1]}, 1);
        return layout;
      };
      for (int p = 0; p < 4; ++p) {
        const StateLayout layout = layouts(p);
        const auto begin = everyone.begin() + static_cast<std::ptrdiff_t>(static_cast<size_t>(p) * largest);
        memory.emplace_back(begin, begin + static_cast<std::ptrdiff_t>(layout.floats));
        for (const SavedPiece& piece : save_state(layout, p, "bucket 2", memory.back())) pieces.push_back(piece);
      }
      EXPECT_EQ(restore_state(c, pieces, second.layout, "bucket 2", 2000, second.state), Restored::exact);
      for (int step = 5; step <= 8; ++step) {
        const Floats expected = run(whole, step);
        EXPECT_TRUE(same_bits(run(second, step), expected)) << method << " step " << step;
        Job fresh(c, options);
        if (step == 5) EXPECT_FALSE(same_bits(run(fresh, step), expected)) << method << ": without the state nothing would be tested";
      }
    });
}

TEST(CompressedReduction, TheStateOutlivesAChangeOfDensityAndADenseStep) {
  for (const char* method : {"topk", "hitopk"})
    run_ranks(2, [&](Communicator& c) {
      Job job(c, {.method = fmt::format("{}:0.25", method), .count = 1000, .ranks_per_node = 2});
      std::vector<double> given(1000, 0.0), sent(1000, 0.0);
      for (int step = 0; step < 9; ++step) {
        if (step == 3) job.plan(fmt::format("{}:0.05", method));
        for (int p = 0; p < 2; ++p)
          for (size_t i = 0; i < 1000; ++i) given[i] += gradient(step, p, 1000)[i];
        Floats result = job.run(step);
        for (size_t i = 0; i < 1000; ++i) sent[i] += result[i];
      }
      Floats last(1000, 0.0f);
      release_residuals(job.layout, job.state, last);
      std::vector<double> dense(last.begin(), last.end());
      c.sum(dense);
      for (size_t i = 0; i < 1000; ++i) ASSERT_NEAR(sent[i] + dense[i], given[i], 1e-4);
      EXPECT_TRUE(std::ranges::all_of(job.state, [](float x) { return x == 0; }));
    });
}

TEST(CompressedReduction, MatricesOfABucketAreFactoredEachAndTheRestIsDense) {
  run_ranks(3, [](Communicator& c) {
    // [0, 10) dense; 20 x 30 of rank 1; one dense float; 2 x 2, which does not get smaller; [615, 620) dense.
    Job job(c, {.method = "powersgd:2", .count = 620, .matrices = {{10, 20, 30}, {611, 2, 2}}});
    EXPECT_EQ(job.layout.pieces[1].covers.count, 60u) << "Q of the one matrix";
    Floats sum(620, 0.0f);
    for (int p = 0; p < 3; ++p) {
      Floats g = gradient(0, p, 620);
      for (size_t i = 0; i < 600; ++i) g[10 + i] = static_cast<float>(p + 1) * static_cast<float>(1 + i / 30) * static_cast<float>(1 + i % 30) * 1e-3f;
      if (p == c.rank()) std::ranges::copy(g, job.gradients[0].begin());
      for (size_t i = 0; i < 620; ++i) sum[i] += g[i];
    }
    const Floats result = job.run();
    for (size_t i = 0; i < 620; ++i) ASSERT_NEAR(result[i], sum[i], i < 10 || i >= 610 ? 1e-6 : 1e-5 * std::fabs(sum[i]) + 1e-6) << i;
    EXPECT_EQ(job.reduction->report().runs, 1u);
    EXPECT_LT(job.reduction->report().error(), 1e-4);
    EXPECT_THROW(Job(c, {.method = "powersgd:2", .count = 620, .matrices = {{0, 20, 30}, {599, 4, 5}}}), ConfigError);
  });
}

TEST(CompressedReduction, BytesAreCountedAsTheyAreSent) {
  run_ranks(4, [](Communicator& c) {
    constexpr size_t kCount = 64 * 1024;
    const auto sent = [&](const char* method) { return Job(c, {.method = method, .count = kCount, .ranks_per_node = 2}).reduction->bytes_moved(); };
    const size_t dense = 2 * 3 * kCount * 4 / 4;
    EXPECT_EQ(sent("bf16"), dense / 2);
    EXPECT_EQ(sent("int8"), 2 * 3 * (kCount / 4 / 256) * 260);
    EXPECT_EQ(sent("onebit"), 2 * 3 * (kCount / 4 / 1024) * 136);
    EXPECT_EQ(sent("topk:0.01"), 3 * 8 * topk_count(0.01, kCount));
    EXPECT_EQ(sent("hitopk:0.01"), kCount * 4 / 2 + 8 * topk_count(0.01, kCount / 2) + kCount * 4 / 2);
    Job job(c, {.method = "bf16", .count = kCount});
    job.run(0);
    job.run(1);
    const CompressionReport& report = job.reduction->report();
    EXPECT_EQ(report.runs, 2u);
    EXPECT_EQ(report.bytes_sent, 2 * job.reduction->bytes_moved());
    EXPECT_EQ(report.dense_bytes, 2 * dense);
    EXPECT_GT(report.codec_seconds, 0);
    EXPECT_GT(report.exchange_seconds, 0);
    EXPECT_GT(report.error(), 1e-4);
    EXPECT_LT(report.error(), 0x1p-8);
    EXPECT_GT(break_even_bandwidth(report), 0);
  });
}

TEST(CompressedReduction, ANanIsSeenByAllAndPasses) {
  for (const char* method : kAll)
    run_ranks(3, [&](Communicator& c) {
      Job job(c, {.method = method, .count = 400, .ranks_per_node = 3});
      job.run(0);
      if (c.rank() == 1) job.gradients[0][77] = std::numeric_limits<float>::quiet_NaN();
      const Floats result = job.run();
      EXPECT_FALSE(std::ranges::all_of(result, [](float x) { return std::isfinite(x); })) << method << " rank " << c.rank();
      for (int step = 2; step < 4; ++step) {
        const Floats next = job.run(step);
        EXPECT_TRUE(std::ranges::all_of(next, [](float x) { return std::isfinite(x); })) << method << " step " << step;
      }
    });
}

TEST(CompressedReduction, StartDoesNotBlockAndSaysWhoIsMissing) {
  for (const char* method : {"int8", "topk:0.1", "hitopk:0.1", "powersgd:1"})
    run_ranks(4, [&](Communicator& c) {
      Job early(c, {.method = method, .count = 1000, .ranks_per_node = 2}), late(c, {.method = method, .count = 1000, .ranks_per_node = 2});
      // Two at a time, in another order on rank 3, which comes when the others have been found waiting for it.
      Job& a = c.rank() == 3 ? late : early;
      Job& b = c.rank() == 3 ? early : late;
      if (c.rank() == 2) {
        a.reduction->start();
        b.reduction->start();
        EXPECT_FALSE(a.reduction->test());
        const Pending pending = a.reduction->pending();
        EXPECT_TRUE(std::ranges::count(pending.missing, 3)) << method;
        EXPECT_NE(pending.operation.find(fmt::format("reduction 'bucket 2' by {}, stage 1", method)), std::string::npos) << pending.operation;
      }
      c.barrier();
      if (c.rank() != 2) {
        a.reduction->start();
        b.reduction->start();
      }
      b.reduction->wait();
      a.reduction->wait();
      expect_same_everywhere(c, early.result(), method);
      expect_same_everywhere(c, late.result(), method);
    });
}

TEST(CompressedReduction, RanksThatCompressOtherwiseAreTold) {
  const auto plan = [](const char* zero, const char* one) {
    run_ranks(2, [&](Communicator& c) { Job(c, {.method = c.rank() == 0 ? zero : one, .count = 1000}); });
  };
  EXPECT_THROW(plan("topk:0.01", "topk:0.02"), CommError);
  EXPECT_THROW(plan("int8", "bf16"), CommError);
  EXPECT_THROW(plan("none", "none"), ConfigError);
}

TEST(NodeGroups, CutRanksIntoNodes) {
  run_ranks(6, [](Communicator& c) {
    const NodeGroups groups(c, 3);
    EXPECT_EQ(groups.node_ranks(), (c.rank() < 3 ? std::vector{0, 1, 2} : std::vector{3, 4, 5}));
    EXPECT_EQ(groups.across_ranks(), (std::vector{c.rank() % 3, c.rank() % 3 + 3}));
    EXPECT_EQ(NodeGroups(c).node_ranks().size(), 6u) << "threads are on one node";
    EXPECT_THROW(NodeGroups(c, 4), ConfigError);
  });
}

}  // namespace
}  // namespace tutti::comm
