#include "tutti/train/settings/slow_rank.h"

#include <gtest/gtest.h>

#include <cmath>

#include "tutti/base/error.h"

namespace tutti::train {
namespace {

config::RunSection slowed(std::vector<std::string> slow, double sigma = 0) {
  return {.slow = std::move(slow), .slow_sigma = sigma};
}

TEST(SlowRank, WaitsAsManyTimesItsComputationAsItIsTold) {
  const config::RunSection run = slowed({"1:3", "3:1.5"});
  EXPECT_EQ(SlowRank(run, 0).delay(7), 0);
  EXPECT_EQ(SlowRank(run, 1).delay(7), 2);
  EXPECT_EQ(SlowRank(run, 3).delay(8), 0.5);
  EXPECT_EQ(slowed_words(run), (std::vector<std::string>{"rank 1 by 3", "rank 3 by 1.5"}));
  EXPECT_TRUE(slowed_words(config::RunSection{}).empty());
}

TEST(SlowRank, ByChanceHalfOfTheStepsAreLateAndTheSeedSaysWhich) {
  const SlowRank rank(slowed({}, 0.4), 1), again(slowed({}, 0.4), 1);
  int late = 0;
  double logarithms = 0;
  constexpr int kSteps = 10000;
  for (int64_t step = 0; step < kSteps; ++step) {
    const double delay = rank.delay(step);
    EXPECT_GE(delay, 0);
    EXPECT_EQ(delay, again.delay(step));
    late += delay > 0;
    logarithms += std::log1p(delay);
  }
  EXPECT_NEAR(late, kSteps / 2, 200);
  EXPECT_NEAR(logarithms / kSteps, 0.4 / std::sqrt(2 * M_PI), 0.01);
}

TEST(SlowRank, WhatIsNoRankAndFactorIsAnError) {
  for (const char* text : {"1", "1:", "x:2", "1:0.5", "1:-2", "-1:2", "1:2x", "1:inf", ""})
    EXPECT_THROW(parse_slow(slowed({text})), ConfigError) << text;
  EXPECT_THROW(parse_slow(slowed({"1:2", "1:3"})), ConfigError);
}

}  // namespace
}  // namespace tutti::train
