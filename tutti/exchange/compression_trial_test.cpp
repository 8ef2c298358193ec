#include "tutti/exchange/compression_trial.h"

#include <gtest/gtest.h>

#include <functional>

#include "tutti/base/error.h"
#include "tutti/comm/transport/inproc/thread_ranks.h"

namespace tutti::exchange {
namespace {

TEST(CompressionTrial, TakesTurns) {
  CompressionTrial trial(3);
  std::string turns;
  while (!trial.complete()) {
    turns += trial.compressed() ? 'C' : 'D';
    trial.record(0, 0);
  }
  EXPECT_EQ(turns, "DCCDDCCD");
  EXPECT_EQ(turns.size(), static_cast<size_t>(trial.steps()));
  EXPECT_THROW(trial.record(0, 0), InternalError);
}

// `blocked` gives a step's seconds by kind and rank; the verdict must be the same on all ranks.
CompressionTrial::Verdict verdict_of(
    int ranks, const std::function<double(int rank, bool compressed, int step)>& blocked,
    const std::function<double(int rank)>& codec) {
  std::vector<CompressionTrial::Verdict> verdicts(static_cast<size_t>(ranks));
  comm::run_ranks(ranks, [&](comm::Communicator& c) {
    CompressionTrial trial(5);
    comm::CompressionReport report{.bytes = 1000, .dense_bytes = 5000};
    for (int step = 0; !trial.complete(); ++step) {
      const bool compressed = trial.compressed();
      if (compressed) report.codec_seconds += codec(c.rank());
      trial.record(blocked(c.rank(), compressed, step), compressed ? codec(c.rank()) : 0);
    }
    verdicts[static_cast<size_t>(c.rank())] = trial.decide(c, report);
  });
  for (const auto& v : verdicts) {
    EXPECT_EQ(v.pays, verdicts[0].pays);
    EXPECT_EQ(v.dense_seconds, verdicts[0].dense_seconds);
    EXPECT_EQ(v.compressed_seconds, verdicts[0].compressed_seconds);
    EXPECT_EQ(v.break_even, verdicts[0].break_even);
  }
  return verdicts[0];
}

TEST(CompressionTrial, PaysWhereTheSlowestRankIsFasterCodecIncluded) {
  const auto on = verdict_of(
      3, [](int, bool compressed, int) { return compressed ? 1.0 : 8.0; }, [](int) { return 2.0; });
  EXPECT_TRUE(on.pays);
  EXPECT_EQ(on.dense_seconds, 8);
  EXPECT_EQ(on.compressed_seconds, 3);
  EXPECT_EQ(on.break_even, 4000 / 12.0);
  EXPECT_EQ(on.to_string("int8"),
            "on: dense blocks 8e+03 ms a step, int8 blocks and codes 3e+03 ms; breaks even at "
            "3.33e-07 GB/s (2.67e-06 Gb/s) a rank");
  const auto off = verdict_of(
      3, [](int, bool compressed, int) { return compressed ? 1.0 : 8.0; }, [](int) { return 7.5; });
  EXPECT_FALSE(off.pays) << "the codec costs more than is saved";
  EXPECT_EQ(off.to_string("int8").substr(0, 3), "off");
  const auto one_slow = verdict_of(
      3, [](int rank, bool compressed, int) { return compressed ? 1.0 : (rank == 2 ? 8.0 : 0.0); },
      [](int rank) { return rank == 0 ? 7.5 : 0.1; });
  EXPECT_FALSE(one_slow.pays) << "the slowest rank of each step counts, not the mean";
}

TEST(CompressionTrial, FirstStepsAndOutliersDoNotDecide) {
  const auto first = verdict_of(
      2,
      [](int, bool compressed, int step) {
        return step < 2 ? (compressed ? 1000.0 : 0.0) : (compressed ? 1.0 : 2.0);
      },
      [](int) { return 0.5; });
  EXPECT_TRUE(first.pays);
  const auto outlier = verdict_of(
      2,
      [](int rank, bool compressed, int step) {
        return rank == 1 && step == 5 ? 1000.0 : (compressed ? 1.0 : 2.0);
      },
      [](int) { return 0.5; });
  EXPECT_TRUE(outlier.pays);
}

}  // namespace
}  // namespace tutti::exchange
