// Tests how a compressed reduction runs: bytes, waits, ranks that are late or have other options.
#include <fmt/format.h>

#include "tutti/base/error.h"
#include "tutti/base/expect_text.h"
#include "tutti/base/patience.h"
#include "tutti/comm/compress/codec/topk.h"
#include "tutti/comm/compress/compressed_job.h"

namespace tutti::comm {
namespace {

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
      if (c.rank() == 1) job.gradients[0][77] = kNan;
      EXPECT_FALSE(all_finite(job.run())) << method << " rank " << c.rank();
      for (int step = 2; step < 4; ++step)
        EXPECT_TRUE(all_finite(job.run(step))) << method << " step " << step;
    }
  });
}

TEST(CompressedReduction, StartDoesNotBlockAndSaysWhoIsMissing) {
  run_ranks(4, [&](Communicator& c) {
    const NodeGroups groups(c, 2);
    for (const char* method : {"int8", "topk:0.1", "hitopk:0.1", "powersgd:1"}) {
      CompressedJob early(c, {.method = method, .count = 1000, .groups = &groups}),
          late(c, {.method = method, .count = 1000, .groups = &groups});
      // Two at a time, in another order on rank 3, which comes after the others wait for it.
      CompressedJob& a = c.rank() == 3 ? late : early;
      CompressedJob& b = c.rank() == 3 ? early : late;
      if (c.rank() == 2) {
        a.reduction->start();
        b.reduction->start();
        EXPECT_FALSE(a.reduction->test());
        const Pending pending = a.reduction->pending();
        EXPECT_TRUE(std::ranges::count(pending.missing, 3)) << method;
        EXPECT_TRUE(has_text(pending.operation,
                             fmt::format("reduction 'bucket 2' by {}, stage 1", method)));
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

// A rank that waits for half a second looks for lost peers, and for its report asks the operation
// which ranks are missing; a rank that waits for too long reports it.
TEST(CompressedReduction, AWaitForARankThatNeverStartsEnds) {
  for (const char* method : {"int8", "hitopk:0.1"}) {
    const std::string stage = fmt::format("reduction 'bucket 2' by {}, stage 1", method);
    EXPECT_TRUE(throws<CommError>({stage, "not arrived: ", "rank 3 on "}, [&] {
      run_ranks(4, [&](Communicator& c) {
        const NodeGroups groups(c, 2);
        CompressedJob job(c, {.method = method, .count = 1000, .groups = &groups});
        c.set_timeout(c.rank() == 2 ? patience(0.7) : kHangSeconds);
        if (c.rank() == 2) job.run(0);
        c.barrier();
      });
    }));
  }
}

TEST(CompressedReduction, ProgressThreadsMoveItForward) {
  run_ranks(2, [&](Communicator& c) {
    c.set_progress(std::make_shared<Progress>(1));
    const NodeGroups groups(c, 2);
    for (const char* method : {"int8", "topk:0.1", "hitopk:0.1", "powersgd:1"}) {
      Jobs jobs;
      for (int i = 0; i < 2; ++i)
        jobs.push_back(job_of(c, {.method = method, .count = 2000, .groups = &groups}));
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
