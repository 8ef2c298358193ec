#include "tutti/train/settings/planning_rules.h"

#include <gtest/gtest.h>

namespace tutti::train {
namespace {

TEST(PlanningRules, SpeedUpIsBoundedByWhatWorkersDoOneAfterAnother) {
  const StepCost cost{.compute = 1, .overhead = 0.1};
  EXPECT_DOUBLE_EQ(planned_speedup(cost, 1), 1);
  // 4 workers do 4 x 1.1 s of work in 1 + 4 x 0.1 s.
  EXPECT_DOUBLE_EQ(planned_speedup(cost, 4), 4.4 / 1.4);
  EXPECT_NEAR(planned_speedup(cost, 1e9), 11, 1e-6) << "(1 + R) / R";
}

TEST(PlanningRules, WorkersAreTheMostThatReachTheEfficiency) {
  const StepCost cost{.compute = 1, .overhead = 0.1};
  for (const double efficiency : {0.9, 0.8, 0.5, 0.25}) {
    const auto workers = workers_for_efficiency(cost, efficiency);
    ASSERT_TRUE(workers);
    const auto of = [&](int64_t n) {
      return planned_speedup(cost, static_cast<double>(n)) / static_cast<double>(n);
    };
    EXPECT_GE(of(*workers), efficiency * (1 - 1e-9));
    EXPECT_LT(of(*workers + 1), efficiency);
  }
  EXPECT_EQ(workers_for_efficiency(cost, 0.5), 12);
  EXPECT_EQ(workers_for_efficiency(cost, 1), 1);
  EXPECT_FALSE(workers_for_efficiency({.compute = 1}, 0.9)) << "nothing is shared";
}

TEST(PlanningRules, ServersCarryWhatWorkersSendWhileTheyCompute) {
  // Computes 2 x 0.1 x 8 / 0.4 for 100 MB of weights, 8 workers, 1 GB/s, 0.4 s.
  EXPECT_EQ(servers_to_hide(1e8, 8, 1e-9, 0.4), 4);
  EXPECT_EQ(servers_to_hide(1e8, 9, 1e-9, 0.4), 5);
  EXPECT_EQ(servers_to_hide(1e3, 1, 1e-9, 0.4), 1);
}

}  // namespace
}  // namespace tutti::train
