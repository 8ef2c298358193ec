#include "tutti/study/statistics.h"

#include <gtest/gtest.h>

#include <cmath>

namespace tutti::study {
namespace {

TEST(Statistics, Median) {
  EXPECT_EQ(median({3, 1, 2}), 2);
  EXPECT_EQ(median({4, 1, 2, 3}), 2.5);
  EXPECT_TRUE(std::isnan(median({})));
}

TEST(Statistics, SpreadOfKnownValues) {
  const Spread s = spread({2, 4, 4, 4, 5, 5, 7, 9});
  EXPECT_EQ(s.count, 8);
  EXPECT_DOUBLE_EQ(s.mean, 5);
  EXPECT_EQ(s.low, 2);
  EXPECT_EQ(s.high, 9);
  EXPECT_DOUBLE_EQ(s.stdev, std::sqrt(32.0 / 7));
  EXPECT_NEAR(s.half_width, 1.8946 * std::sqrt(32.0 / 7) / std::sqrt(8.0), 1e-9);
}

TEST(Statistics, OneValueHasNoSpread) {
  const Spread s = spread({3});
  EXPECT_EQ(s.mean, 3);
  EXPECT_TRUE(std::isnan(s.stdev));
  EXPECT_TRUE(std::isnan(s.half_width));
  EXPECT_EQ(spread({}).count, 0);
}

TEST(Statistics, QuantilesOfStudentsT) {
  EXPECT_NEAR(t_quantile_95(1), 6.3138, 1e-4);
  EXPECT_NEAR(t_quantile_95(10.9), 1.8125, 1e-4);
  EXPECT_NEAR(t_quantile_95(60), 1.6706, 5e-4);
  EXPECT_NEAR(t_quantile_95(1e9), 1.6449, 1e-4);
  EXPECT_TRUE(std::isnan(t_quantile_95(0)));
}

TEST(Statistics, RatioOfMeansHasAnIntervalOnlyWithRepeatsOnBothSides) {
  const Ratio ratio = ratio_of_means(spread({9.9, 10.1}), spread({4.95, 5.05}));
  EXPECT_DOUBLE_EQ(ratio.value, 2);
  // Equal relative variances v = 0.02 / (2 * 100) each: 2 degrees of freedom, factor exp(2.92
  // sqrt(2 v)).
  EXPECT_NEAR(ratio.high / 2, std::exp(2.92 * std::sqrt(2e-4)), 1e-9);
  EXPECT_NEAR(ratio.low * ratio.high, 4, 1e-9);
  const Ratio single = ratio_of_means(spread({10}), spread({5, 5}));
  EXPECT_DOUBLE_EQ(single.value, 2);
  EXPECT_TRUE(std::isnan(single.low));
}

}  // namespace
}  // namespace tutti::study
