#include "tutti/exchange/bucket_size.h"

#include <gtest/gtest.h>

#include <cmath>

#include "tutti/comm/transport/inproc/thread_ranks.h"

namespace tutti::exchange {
namespace {

TEST(BucketSize, FitGoesThroughItsPoints) {
  const ExchangeCost cost = fit_exchange(1000, 3e-6, 5000, 7e-6);
  EXPECT_NEAR(cost.bytes_per_s, 1e9, 1);
  EXPECT_NEAR(cost.latency_s, 2e-6, 1e-12);
}

TEST(BucketSize, NoiseMakesNoNegativeCosts) {
  EXPECT_EQ(fit_exchange(1000, 1e-6, 5000, 9e-6).latency_s, 0.0);
  EXPECT_TRUE(std::isinf(fit_exchange(1000, 3e-6, 5000, 2e-6).bytes_per_s));
}

TEST(BucketSize, IsTheRootOfLatencyTimesGradientTimesBandwidth) {
  // sqrt(50e-6 * 2.6e6 * 1.25e9) = 403 KB at 10 Gb/s and 50 us: between 256 and 512 KiB, nearer to
  // the latter.
  EXPECT_EQ(best_bucket_bytes({50e-6, 1.25e9}, 2'600'000), size_t{512} << 10);
  // Compares with the minimum of the cost itself over all powers of two.
  for (const double latency : {2e-6, 50e-6, 1e-3})
    for (const double rate : {1e8, 1e9, 3e10}) {
      constexpr double kGradient = 1e8;
      const auto cost = [&](double s) { return latency * kGradient / s + s / rate; };
      const auto chosen =
          static_cast<double>(best_bucket_bytes({latency, rate}, static_cast<size_t>(kGradient)));
      for (double s = 65536; s <= 16777216; s *= 2)
        EXPECT_LE(cost(chosen), cost(s) * 1.03) << latency << ' ' << rate << ' ' << s;
    }
}

TEST(BucketSize, StaysWithinItsBounds) {
  EXPECT_EQ(best_bucket_bytes({0, 1e9}, 1 << 20), size_t{64} << 10);
  EXPECT_EQ(best_bucket_bytes({1, 1e12}, size_t{1} << 30), size_t{16} << 20);
  EXPECT_EQ(best_bucket_bytes(fit_exchange(1, 1e-6, 2, 1e-6), 1 << 20), size_t{16} << 20);
}

TEST(BucketSize, IsTheSameOnAllRanks) {
  comm::run_ranks(3, [](comm::Communicator& c) {
    const ExchangeCost cost = measure_exchange(c);
    EXPECT_GT(cost.bytes_per_s, 0.0);
    for (const double other : c.allgather_value(cost.latency_s)) EXPECT_EQ(other, cost.latency_s);
  });
}

}  // namespace
}  // namespace tutti::exchange
