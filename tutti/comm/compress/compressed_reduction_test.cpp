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
#include "tutti/comm/compress/codec/codec_samples.h"
#include "tutti/comm/compress/codec/topk.h"
#include "tutti/comm/compress/saved_sample.h"
#include "tutti/comm/transport/inproc/thread_ranks.h"

namespace tutti::comm {
namespace {

constexpr const char* kMethods[] = {"bf16",       "fp16",      "int8",        "onebit",
                                    "topk:0.01",  "topk:0.3",  "hitopk:0.05", "hitopk:0.3",
                                    "powersgd:1", "powersgd:4"};

// Of one rank's part, a function of its arguments alone.
Floats gradient(int step, int rank, size_t count, int part = 0) {
  Rng rng(static_cast<uint64_t>(step), Purpose::test, static_cast<uint64_t>(rank * 100 + part));
  Floats g(count);
  for (float& x : g) x = rng.normal();
  return g;
}

// One rank's share of a compressed reduction.
struct CompressedJob {
  struct Options {
    std::string method;
    size_t count = 0;
    int parts = 1;
    const NodeGroups* groups = nullptr;
    std::vector<MatrixBlock> matrices = {};
  };
  CompressedJob(Communicator& communicator, const Options& options)
      : c(communicator), count(options.count),
        gradients(static_cast<size_t>(options.parts), Floats(options.count)), sum(options.count) {
    spec.name = "bucket 2";
    spec.count = count;
    for (Floats& part : gradients) spec.parts.push_back(part.data());
    spec.result = sum.data();
    spec.matrices = options.matrices;
    spec.groups = options.groups;
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
  void fill(int step) {
    for (size_t p = 0; p < gradients.size(); ++p)
      std::ranges::copy(gradient(step, c.rank(), count, static_cast<int>(p)), gradients[p].begin());
  }
  Floats run() {
    reduction->start();
    reduction->wait();
    return sum;
  }
  Floats run(int step) {
    fill(step);
    return run();
  }

  Communicator& c;
  size_t count;
  std::vector<Floats> gradients;
  Floats sum;
  CompressedReductionSpec spec;
  StateLayout layout;
  Floats state;
  std::unique_ptr<CompressedReduction> reduction;
};
using Jobs = std::vector<std::unique_ptr<CompressedJob>>;

// The same bits on all ranks.
void expect_same_everywhere(Communicator& c, const Floats& result, const std::string& what) {
  Floats zeros = result;
  c.broadcast(std::as_writable_bytes(std::span(zeros)), 0);
  EXPECT_TRUE(same_bits(result, zeros)) << what << ": rank " << c.rank() << " and rank 0";
}

// All jobs, of equal count, are in flight together. Everything given up to now is either in the
// results or in a residual.
void expect_nothing_lost(Communicator& c, const Jobs& jobs, int steps, const std::string& what) {
  const size_t count = jobs[0]->count;
  const size_t parts = jobs[0]->gradients.size();
  std::vector<double> given(count, 0.0), sent(count * jobs.size(), 0.0);
  double largest = 1;
  for (int step = 0; step < steps; ++step) {
    for (int p = 0; p < c.size(); ++p)
      for (size_t part = 0; part < parts; ++part) {
        const Floats g = gradient(step, p, count, static_cast<int>(part));
        for (size_t i = 0; i < count; ++i) given[i] += g[i];
      }
    for (const auto& job : jobs) job->fill(step), job->reduction->start();
    Floats results;
    for (const auto& job : jobs) {
      job->reduction->wait();
      results.insert(results.end(), job->sum.begin(), job->sum.end());
    }
    expect_same_everywhere(c, results, what);
    for (size_t i = 0; i < results.size(); ++i) {
      sent[i] += results[i];
      largest = std::max(largest, std::fabs(static_cast<double>(results[i])));
    }
  }
  std::vector<double> rest(sent.size());
  for (size_t j = 0; j < jobs.size(); ++j) {
    Floats mine(count, 0.0f), state = jobs[j]->state;
    release_residuals(jobs[j]->layout, state, mine);
    std::ranges::copy(mine, rest.begin() + static_cast<std::ptrdiff_t>(j * count));
  }
  c.sum(rest);
  for (size_t j = 0; j < jobs.size(); ++j) {
    double worst = 0;
    for (size_t i = 0; i < count; ++i)
      worst = std::max(worst, std::fabs(sent[j * count + i] + rest[j * count + i] - given[i]));
    EXPECT_LT(worst, 1e-6 * largest * steps * c.size())
        << to_string(jobs[j]->spec.compression) << ", " << what;
  }
}

TEST(CompressedReduction, EveryRankGetsTheSameBitsAndNothingIsLost) {
  for (int ranks = 1; ranks <= 5; ++ranks)
    run_ranks(ranks, [&](Communicator& c) {
      const NodeGroups one_node(c, ranks), single(c, 1), pairs(c, ranks == 4 ? 2 : 1);
      for (const size_t count : {0, 1, 3, 127, 3001}) {
        Jobs jobs;
        for (const char* method : kMethods)
          jobs.push_back(std::make_unique<CompressedJob>(
              c, CompressedJob::Options{
                     .method = method, .count = count, .parts = 1 + ranks % 2, .groups = &pairs}));
        for (const NodeGroups* groups : {&one_node, &single})
          jobs.push_back(
              std::make_unique<CompressedJob>(c, CompressedJob::Options{.method = "hitopk:0.1",
                                                                        .count = count,
                                                                        .parts = 1 + ranks % 2,
                                                                        .groups = groups}));
        expect_nothing_lost(c, jobs, 3, fmt::format("{} of {} ranks", count, ranks));
      }
    });
}

TEST(CompressedReduction, AMillionElements) {
  run_ranks(4, [&](Communicator& c) {
    const NodeGroups pairs(c, 2);
    for (const char* method : {"int8", "onebit", "topk:0.01", "hitopk:0.01", "powersgd:2"}) {
      Jobs jobs;
      jobs.push_back(std::make_unique<CompressedJob>(
          c, CompressedJob::Options{.method = method, .count = 1000003, .groups = &pairs}));
      expect_nothing_lost(c, jobs, 1, method);
    }
  });
}

// The first step, with no residual yet: within what the codecs may round.
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
        for (size_t i = 0; i < kCount; ++i) {
          squares += std::pow(total[i] / steps - sum[i], 2);
        }
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

TEST(CompressedReduction, BytesAreCounted) {
  run_ranks(4, [](Communicator& c) {
    constexpr size_t kCount = 64 * 1024;
    const NodeGroups groups(c, 2);
    const auto received = [&](const char* method) {
      return CompressedJob(c, {.method = method, .count = kCount, .groups = &groups})
          .reduction->bytes_received();
    };
    const size_t dense = 2 * 3 * kCount * 4 / 4;
    EXPECT_EQ(received("bf16"), dense / 2);
    EXPECT_EQ(received("int8"), 2 * 3 * (kCount / 4 / 256) * 260);
    EXPECT_EQ(received("onebit"), 2 * 3 * (kCount / 4 / 1024) * 136);
    EXPECT_EQ(received("topk:0.01"), 3 * 8 * topk_count(0.01, kCount));
    EXPECT_EQ(received("hitopk:0.01"),
              kCount * 4 / 2 + 8 * topk_count(0.01, kCount / 2) + kCount * 4 / 2);
    CompressedJob job(c, {.method = "bf16", .count = kCount});
    job.run(0);
    job.run(1);
    const CompressionReport& report = job.reduction->report();
    EXPECT_EQ(report.runs, 2u);
    EXPECT_EQ(report.bytes, 2 * job.reduction->bytes_received());
    EXPECT_EQ(report.dense_bytes, 2 * dense);
    EXPECT_GT(report.codec_seconds, 0);
    EXPECT_EQ(report.caller_seconds, report.codec_seconds) << "no progress threads";
    EXPECT_GT(report.exchange_seconds, 0);
    EXPECT_GT(report.error(), 1e-4);
    EXPECT_LT(report.error(), 0x1p-8);
    EXPECT_GT(break_even_bandwidth(report), 0);
  });
}

TEST(CompressedReduction, ANanIsSeenByAllAndPasses) {
  run_ranks(3, [&](Communicator& c) {
    const NodeGroups groups(c, 3);
    for (const char* method : kMethods) {
      CompressedJob job(c, {.method = method, .count = 400, .groups = &groups});
      job.run(0);
      if (c.rank() == 1) job.gradients[0][77] = std::numeric_limits<float>::quiet_NaN();
      const Floats result = job.run();
      EXPECT_FALSE(std::ranges::all_of(result, [](float x) { return std::isfinite(x); }))
          << method << " rank " << c.rank();
      for (int step = 2; step < 4; ++step) {
        const Floats next = job.run(step);
        EXPECT_TRUE(std::ranges::all_of(next, [](float x) { return std::isfinite(x); }))
            << method << " step " << step;
      }
    }
  });
}

TEST(CompressedReduction, StartDoesNotBlockAndSaysWhoIsMissing) {
  run_ranks(4, [&](Communicator& c) {
    const NodeGroups groups(c, 2);
    for (const char* method : {"int8", "topk:0.1", "hitopk:0.1", "powersgd:1"}) {
      CompressedJob early(c, {.method = method, .count = 1000, .groups = &groups}),
          late(c, {.method = method, .count = 1000, .groups = &groups});
      // Two at a time, in another order on rank 3, which comes when the others have been found
      // waiting for it.
      CompressedJob& a = c.rank() == 3 ? late : early;
      CompressedJob& b = c.rank() == 3 ? early : late;
      if (c.rank() == 2) {
        a.reduction->start();
        b.reduction->start();
        EXPECT_FALSE(a.reduction->test());
        const Pending pending = a.reduction->pending();
        EXPECT_TRUE(std::ranges::count(pending.missing, 3)) << method;
        EXPECT_NE(
            pending.operation.find(fmt::format("reduction 'bucket 2' by {}, stage 1", method)),
            std::string::npos)
            << pending.operation;
      }
      c.barrier();
      if (c.rank() != 2) {
        a.reduction->start();
        b.reduction->start();
      }
      b.reduction->wait();
      a.reduction->wait();
      expect_same_everywhere(c, early.sum, method);
      expect_same_everywhere(c, late.sum, method);
    }
  });
}

// Whoever waits for half a second looks for lost peers, and asks the operation for what it waits;
// whoever waits for too long says so.
TEST(CompressedReduction, AWaitForARankThatNeverStartsEnds) {
  for (const char* method : {"int8", "hitopk:0.1"}) {
    std::string message;
    try {
      run_ranks(4, [&](Communicator& c) {
        const NodeGroups groups(c, 2);
        CompressedJob job(c, {.method = method, .count = 1000, .groups = &groups});
        c.set_timeout(c.rank() == 2 ? 0.7 : 60);
        if (c.rank() == 2) job.run(0);
        c.barrier();
      });
    } catch (const CommError& error) {
      message = error.what();
    }
    EXPECT_NE(message.find(fmt::format("reduction 'bucket 2' by {}, stage 1", method)),
              std::string::npos)
        << message;
    EXPECT_NE(message.find("not arrived: "), std::string::npos) << message;
    EXPECT_NE(message.find("rank 3 on "), std::string::npos) << message;
  }
}

TEST(CompressedReduction, ProgressThreadsMoveItForward) {
  run_ranks(2, [&](Communicator& c) {
    const int processors[] = {Progress::kNoCore};
    c.set_progress(std::make_shared<Progress>(processors));
    const NodeGroups groups(c, 2);
    for (const char* method : {"int8", "topk:0.1", "hitopk:0.1", "powersgd:1"}) {
      Jobs jobs;
      for (int i = 0; i < 2; ++i)
        jobs.push_back(std::make_unique<CompressedJob>(
            c, CompressedJob::Options{.method = method, .count = 2000, .groups = &groups}));
      expect_nothing_lost(c, jobs, 5, method);
      // Destroyed in flight: its peers never start.
      if (c.rank() == 0) jobs[0]->reduction->start();
      c.barrier();
    }
    c.barrier();
  });
}

TEST(CompressedReduction, RanksThatCompressOtherwiseAreTold) {
  const auto plan = [](const char* zero, const char* one) {
    run_ranks(2, [&](Communicator& c) {
      CompressedJob(c, {.method = c.rank() == 0 ? zero : one, .count = 1000});
    });
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
