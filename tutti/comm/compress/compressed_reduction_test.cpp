// Tests that a compressed reduction gives the sum, up to its codec's rounding, and loses nothing.
#include "tutti/comm/compress/compressed_reduction.h"

#include <fmt/format.h>

#include <map>
#include <mutex>

#include "tutti/comm/compress/compressed_job.h"
#include "tutti/comm/compress/saved_sample.h"

namespace tutti::comm {
namespace {

TEST(CompressedReduction, EveryRankGetsTheSameBitsAndNothingIsLost) {
  for (int ranks = 1; ranks <= 5; ++ranks)
    run_ranks(ranks, [&](Communicator& c) {
      const NodeGroups one_node(c, ranks), single(c, 1), pairs(c, ranks == 4 ? 2 : 1);
      for (const size_t count : {0, 1, 3, 127, 3001}) {
        Jobs jobs;
        for (const char* method : kMethods)
          jobs.push_back(job_of(
              c, {.method = method, .count = count, .parts = 1 + ranks % 2, .groups = &pairs}));
        for (const NodeGroups* groups : {&one_node, &single})
          jobs.push_back(job_of(
              c,
              {.method = "hitopk:0.1", .count = count, .parts = 1 + ranks % 2, .groups = groups}));
        expect_nothing_lost(c, jobs, 3, fmt::format("{} of {} ranks", count, ranks));
      }
    });
}

// Several pieces of 64 KiB, and contributions that are not whole pieces.
TEST(CompressedReduction, ManyPieces) {
  run_ranks(4, [&](Communicator& c) {
    const NodeGroups pairs(c, 2);
    for (const char* method : {"int8", "onebit", "topk:0.01", "hitopk:0.01", "powersgd:2"}) {
      Jobs jobs;
      jobs.push_back(job_of(c, {.method = method, .count = 280003, .groups = &pairs}));
      expect_nothing_lost(c, jobs, 1, method);
    }
  });
}

// The first step, with no residual yet: the result is within the codecs' rounding.
TEST(CompressedReduction, TheSumIsRightWithinTheCodecsBounds) {
  const std::map<std::string, double> half_steps{
      {"bf16", 0x1p-8}, {"fp16", 0x1p-11}, {"int8", 1 / 254.0}, {"topk:1", 0}, {"hitopk:1", 0}};
  for (int ranks = 1; ranks <= 5; ++ranks)
    run_ranks(ranks, [&](Communicator& c) {
      const NodeGroups groups(c, ranks == 4 ? 2 : 1);
      for (const auto& [method, half] : half_steps) {
        constexpr size_t kCount = 3001;
        CompressedJob job(c, {.method = method, .count = kCount, .groups = &groups});
        const Floats result = job.run(0);
        Floats sum(kCount, 0.0f);
        double largest = 0, of_sum = 0;
        for (int p = 0; p < ranks; ++p) {
          const Floats g = gradient(0, p, kCount);
          double of_rank = 0;
          for (size_t i = 0; i < kCount; ++i)
            sum[i] += g[i], of_rank = std::max(of_rank, std::fabs(static_cast<double>(g[i])));
          largest += of_rank;
        }
        for (const float x : sum) of_sum = std::max(of_sum, std::fabs(static_cast<double>(x)));
        const double bound = 1.02 * half * (largest + of_sum) + 1e-6 * largest;
        double worst = 0;
        for (size_t i = 0; i < kCount; ++i)
          worst = std::max(worst, std::fabs(static_cast<double>(result[i]) - sum[i]));
        EXPECT_LE(worst, bound) << method << " " << ranks;
        if (half > 0) {
          EXPECT_GT(worst, bound / 100) << method << " compresses nothing";
        }
      }
    });
}

// With the same gradient in every step, the mean of the results approaches the sum over ranks as 1
// / steps.
TEST(CompressedReduction, TheMeanOverStepsConverges) {
  for (const char* method : {"int8", "onebit", "topk:0.1", "hitopk:0.1", "powersgd:4"})
    run_ranks(2, [&](Communicator& c) {
      constexpr size_t kCount = 900;
      const NodeGroups groups(c, 1);
      CompressedJob job(c, {.method = method, .count = kCount, .groups = &groups});
      std::vector<double> total(kCount, 0.0), sum(kCount, 0.0);
      for (int p = 0; p < 2; ++p)
        for (size_t i = 0; const float g : gradient(3, p, kCount)) sum[i++] += g;
      const auto distance = [&](int steps) {
        double squares = 0;
        for (size_t i = 0; i < kCount; ++i) squares += std::pow(total[i] / steps - sum[i], 2);
        return std::sqrt(squares);
      };
      double early = 0;
      for (int step = 1; step <= 200; ++step) {
        const Floats result = job.run(3);
        for (size_t i = 0; i < kCount; ++i) total[i] += result[i];
        if (step == 20 && c.rank() == 0) early = distance(step);
      }
      if (c.rank() == 0) {
        EXPECT_LT(distance(200), 0.4 * early) << method;
      }
    });
}

// Whole numbers are added without rounding, so that the order of the parts does not matter.
TEST(CompressedReduction, PartsAreAddedBeforeTheyAreEncoded) {
  run_ranks(3, [&](Communicator& c) {
    const NodeGroups groups(c, 3);
    for (const char* method : kMethods) {
      CompressedJob several(c, {.method = method, .count = 500, .parts = 3, .groups = &groups}),
          one(c, {.method = method, .count = 500, .groups = &groups});
      for (size_t p = 0; p < 3; ++p) {
        const Floats g = gradient(0, c.rank(), 500, static_cast<int>(p));
        for (size_t i = 0; i < 500; ++i)
          one.gradients[0][i] += several.gradients[p][i] = std::round(100 * g[i]);
      }
      EXPECT_TRUE(same_bits(several.run(), one.run())) << method;
    }
  });
}

TEST(CompressedReduction, ACheckpointContinuesWithTheSameBits) {
  std::mutex mutex;
  std::map<std::string, Floats> file;
  for (const char* method : kMethods) {
    file.clear();
    run_ranks(4, [&](Communicator& c) {
      const NodeGroups groups(c, 2);
      const CompressedJob::Options options{.method = method, .count = 2000, .groups = &groups};
      const auto run = [&](CompressedJob& job, int step) {
        job.reduction->set_step(static_cast<uint64_t>(step));
        return job.run(step);
      };
      CompressedJob whole(c, options);
      for (int step = 1; step <= 3; ++step) run(whole, step);
      for (const SavedPiece& piece : save_state(whole.layout, c.rank(), "bucket 2", whole.state)) {
        const std::lock_guard lock(mutex);
        file.emplace(piece.name, Floats(piece.values.begin(), piece.values.end()));
      }
      c.barrier();
      std::vector<SavedPiece> pieces;
      for (const auto& [name, values] : file) pieces.push_back({name, values});
      CompressedJob second(c, options), fresh(c, options);
      SavedSample saved(4, pieces);
      EXPECT_EQ(restore_state(c, saved, second.layout, "bucket 2", 2000, second.state),
                Restored::exact);
      for (int step = 4; step <= 6; ++step) {
        const Floats expected = run(whole, step);
        EXPECT_TRUE(same_bits(run(second, step), expected)) << method << " step " << step;
        EXPECT_FALSE(same_bits(run(fresh, step), expected))
            << method << ": without the state nothing would be tested";
      }
    });
  }
}

TEST(CompressedReduction, TheStateOutlivesAChangeOfDensityAndADenseStep) {
  for (const char* method : {"topk", "hitopk"})
    run_ranks(2, [&](Communicator& c) {
      const NodeGroups groups(c, 2);
      CompressedJob job(
          c, {.method = fmt::format("{}:0.25", method), .count = 1000, .groups = &groups});
      std::vector<double> given(1000, 0.0), sent(1000, 0.0);
      for (int step = 0; step < 9; ++step) {
        if (step == 3) job.plan(fmt::format("{}:0.05", method));
        for (int p = 0; p < 2; ++p)
          for (size_t i = 0; const float g : gradient(step, p, 1000)) given[i++] += g;
        const Floats result = job.run(step);
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
    // [0, 10) dense; 20 x 30 of rank 1; one dense float; 2 x 2, which does not get smaller; [615,
    // 620) dense.
    CompressedJob job(
        c, {.method = "powersgd:2", .count = 620, .matrices = {{10, 20, 30}, {611, 2, 2}}});
    EXPECT_EQ(job.layout.pieces[1].covers.count, 60u) << "Q of the one matrix";
    Floats sum(620, 0.0f);
    for (int p = 0; p < 3; ++p) {
      Floats g = gradient(0, p, 620);
      for (size_t i = 0; i < 600; ++i)
        g[10 + i] = static_cast<float>(p + 1) * static_cast<float>(1 + i / 30) *
                    static_cast<float>(1 + i % 30) * 1e-3f;
      if (p == c.rank()) std::ranges::copy(g, job.gradients[0].begin());
      for (size_t i = 0; i < 620; ++i) sum[i] += g[i];
    }
    const Floats result = job.run();
    for (size_t i = 0; i < 620; ++i)
      ASSERT_NEAR(result[i], sum[i], i < 10 || i >= 610 ? 1e-6 : 1e-5 * std::fabs(sum[i]) + 1e-6)
          << i;
    EXPECT_EQ(job.reduction->report().runs, 1u);
    EXPECT_LT(job.reduction->report().error(), 1e-4);
    EXPECT_THROW(
        CompressedJob(
            c, {.method = "powersgd:2", .count = 620, .matrices = {{0, 20, 30}, {599, 4, 5}}}),
        ConfigError);
  });
}

}  // namespace
}  // namespace tutti::comm
