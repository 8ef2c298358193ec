#include "tutti/train/network/schedule.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "tutti/base/error.h"

namespace tutti::train {
namespace {

// Values of PyTorch 2's OneCycleLR(max_lr=0.4, total_steps=20, pct_start=0.3, div_factor=25,
// final_div_factor=1e4).
constexpr std::array<double, 20> kLinear = {
    0.016,        0.0928,        0.1696,        0.2464,        0.3232,
    0.4,          0.3714286857,  0.3428573714,  0.3142860571,  0.2857147429,
    0.2571434286, 0.2285721143,  0.2000008,     0.1714294857,  0.1428581714,
    0.1142868571, 0.08571554286, 0.05714422857, 0.02857291429, 1.6e-06};
constexpr std::array<double, 20> kCosine = {
    0.016,         0.05266873708, 0.1486687371,  0.2673312629,   0.3633312629,
    0.4,           0.3949856025,  0.3801938528,  0.356366471,    0.3246982616,
    0.2867772007,  0.2445048088,  0.2000008,     0.1554967912,   0.1132243993,
    0.07530333842, 0.04363512897, 0.01980774719, 0.005015997506, 1.6e-06};

LearningRateSchedule one_cycle(config::Annealing annealing) {
  return LearningRateSchedule({.name = config::ScheduleKind::one_cycle,
                               .annealing = annealing,
                               .peak_at = 0.3,
                               .initial_factor = 1.0 / 25,
                               .final_factor = 1.0 / 25e4},
                              {.rate = 0.4, .total_steps = 20});
}

}  // namespace

TEST(LearningRateSchedule, OneCycleMatchesPyTorch) {
  const LearningRateSchedule linear = one_cycle(config::Annealing::linear),
                             cosine = one_cycle(config::Annealing::cosine);
  for (size_t i = 0; i < 20; ++i) {
    EXPECT_NEAR(linear.rate(static_cast<int64_t>(i)), kLinear[i], 1e-9) << i;
    EXPECT_NEAR(cosine.rate(static_cast<int64_t>(i)), kCosine[i], 1e-9) << i;
  }
  EXPECT_DOUBLE_EQ(linear.rate(1000), linear.rate(19));  // beyond the end
}

TEST(LearningRateSchedule, InverseSquareRootIsThatOfTransformers) {
  // d^-0.5 min(step^-0.5, step warmup^-1.5) with d = 512 and a warm-up of 4000; steps count from 1.
  const LearningRateSchedule schedule(
      {.name = config::ScheduleKind::inverse_sqrt, .warmup_steps = 3999},
      {.rate = 1 / std::sqrt(512.0 * 4000), .total_steps = 5000});
  for (const int64_t step : {1, 2, 3999, 4000, 4001, 100'000}) {
    const auto s = static_cast<double>(step);
    const double rate = std::min(std::pow(s, -0.5), s * std::pow(4000, -1.5)) / std::sqrt(512.0);
    EXPECT_NEAR(schedule.rate(step - 1), rate, 1e-12) << step;
  }
}

TEST(LearningRateSchedule, Steps) {
  const LearningRateSchedule epochs({.name = config::ScheduleKind::steps, .milestones = {100, 150}},
                                    {.rate = 0.1, .total_steps = 2000, .steps_per_epoch = 10});
  EXPECT_DOUBLE_EQ(epochs.rate(0), 0.1);
  EXPECT_DOUBLE_EQ(epochs.rate(999), 0.1);
  EXPECT_NEAR(epochs.rate(1000), 0.01, 1e-15);
  EXPECT_NEAR(epochs.rate(1500), 0.001, 1e-15);
  const LearningRateSchedule steps({.name = config::ScheduleKind::steps,
                                    .milestones = {3},
                                    .milestone_unit = config::MilestoneUnit::steps,
                                    .gamma = 0.5},
                                   {.rate = 1, .total_steps = 20, .steps_per_epoch = 10});
  EXPECT_DOUBLE_EQ(steps.rate(2), 1);
  EXPECT_DOUBLE_EQ(steps.rate(3), 0.5);
}

TEST(LearningRateSchedule, Cosine) {
  const LearningRateSchedule s({.name = config::ScheduleKind::cosine, .final_factor = 0.5},
                               {.rate = 2, .total_steps = 5});
  EXPECT_DOUBLE_EQ(s.rate(0), 2);
  EXPECT_NEAR(s.rate(1), 1 + 0.5 * (1 + std::sqrt(0.5)), 1e-12);
  EXPECT_DOUBLE_EQ(s.rate(2), 1.5);
  EXPECT_DOUBLE_EQ(s.rate(4), 1);
}

TEST(LearningRateSchedule, WarmUp) {
  const LearningRateSchedule s({.warmup_steps = 4, .warmup_factor = 0.5},
                               {.rate = 1, .total_steps = 100});
  EXPECT_DOUBLE_EQ(s.rate(0), 0.6);
  EXPECT_DOUBLE_EQ(s.rate(3), 0.9);
  EXPECT_DOUBLE_EQ(s.rate(4), 1);
  // Milestones count from the start of the run; a cosine starts after the warm-up.
  const LearningRateSchedule steps(
      {.name = config::ScheduleKind::steps, .warmup_steps = 4, .milestones = {1}},
      {.rate = 1, .total_steps = 100, .steps_per_epoch = 10});
  EXPECT_DOUBLE_EQ(steps.rate(9), 1);
  EXPECT_DOUBLE_EQ(steps.rate(10), 0.1);
  const LearningRateSchedule cosine({.name = config::ScheduleKind::cosine, .warmup_steps = 4},
                                    {.rate = 1, .total_steps = 15});
  EXPECT_DOUBLE_EQ(cosine.rate(4), 1);
  EXPECT_DOUBLE_EQ(cosine.rate(9), 0.5);
  EXPECT_NEAR(cosine.rate(14), 0, 1e-15);
}

TEST(LearningRateSchedule, FactorsAreRelativeToThePeak) {
  const LearningRateSchedule s({.name = config::ScheduleKind::steps,
                                .milestones = {10, 20, 30},
                                .milestone_unit = config::MilestoneUnit::steps,
                                .factors = {0.5, 0.25, 0}},
                               {.rate = 4, .total_steps = 100});
  EXPECT_DOUBLE_EQ(s.rate(9), 4);
  EXPECT_DOUBLE_EQ(s.rate(10), 2);
  EXPECT_DOUBLE_EQ(s.rate(29), 1);
  EXPECT_DOUBLE_EQ(s.rate(30), 0);
}

TEST(LearningRateSchedule, Polynomial) {
  const LearningRateSchedule s({.name = config::ScheduleKind::polynomial,
                                .warmup_steps = 2,
                                .power = 2,
                                .final_factor = 0.1},
                               {.rate = 1, .total_steps = 13});
  EXPECT_DOUBLE_EQ(s.rate(2), 1);
  EXPECT_NEAR(s.rate(7), 0.1 + 0.9 * 0.25, 1e-15);  // half-way
  EXPECT_NEAR(s.rate(12), 0.1, 1e-15);
  EXPECT_NEAR(s.rate(1000), 0.1, 1e-15);
}

TEST(LearningRateSchedule, HoldsTheRateBeforeItFalls) {
  const LearningRateSchedule trapezoid({.name = config::ScheduleKind::polynomial,
                                        .warmup_steps = 2,
                                        .hold = 0.5,
                                        .final_factor = 0.2},
                                       {.rate = 1, .total_steps = 11});
  EXPECT_NEAR(trapezoid.rate(0), 1.0 / 3, 1e-15);
  for (int64_t step = 2; step <= 6; ++step) EXPECT_DOUBLE_EQ(trapezoid.rate(step), 1) << step;
  EXPECT_NEAR(trapezoid.rate(8), 0.6, 1e-15);
  EXPECT_NEAR(trapezoid.rate(10), 0.2, 1e-15);
  const LearningRateSchedule cosine({.name = config::ScheduleKind::cosine, .hold = 0.5},
                                    {.rate = 1, .total_steps = 9});
  EXPECT_DOUBLE_EQ(cosine.rate(4), 1);
  EXPECT_DOUBLE_EQ(cosine.rate(6), 0.5);
  // Nothing falls where the whole run is held.
  const LearningRateSchedule held({.name = config::ScheduleKind::cosine, .hold = 1},
                                  {.rate = 1, .total_steps = 9});
  EXPECT_DOUBLE_EQ(held.rate(8), 1);
}

TEST(LearningRateSchedule, AWarmUpByEpochsIsConstantInEach) {
  const LearningRateSchedule s(
      {.warmup_steps = 40, .warmup_factor = 0.25, .warmup_rise = config::WarmupRise::epochs},
      {.rate = 4, .total_steps = 100, .steps_per_epoch = 10});
  // e * (peak - base) / 4 + base, starting at e = 0.
  for (int64_t step = 0; step < 40; ++step)
    EXPECT_DOUBLE_EQ(s.rate(step), static_cast<double>(step / 10) * (4 - 1) / 4 + 1) << step;
  EXPECT_DOUBLE_EQ(s.rate(40), 4);
}

TEST(LearningRateSchedule, ScalesWithTheBatch) {
  const auto rate = [](config::BatchScaling scaling) {
    return LearningRateSchedule({.scale_with_batch = scaling, .base_batch = 128},
                                {.rate = 0.1, .global_batch = 512})
        .rate(0);
  };
  EXPECT_DOUBLE_EQ(rate(config::BatchScaling::none), 0.1);
  EXPECT_DOUBLE_EQ(rate(config::BatchScaling::linear), 0.4);
  EXPECT_DOUBLE_EQ(rate(config::BatchScaling::sqrt), 0.2);
}

TEST(LearningRateSchedule, RefusesNonsense) {
  EXPECT_THROW(LearningRateSchedule({.warmup_steps = 10}, {.total_steps = 10}), ConfigError);
  EXPECT_THROW(
      LearningRateSchedule({.name = config::ScheduleKind::steps, .milestones = {5, 5}}, {}),
      ConfigError);
  EXPECT_THROW(LearningRateSchedule({}, {.rate = -1}), ConfigError);
}

}  // namespace tutti::train
