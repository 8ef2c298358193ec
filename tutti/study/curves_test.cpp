#include "tutti/study/curves.h"

#include <gtest/gtest.h>

namespace tutti::study {
namespace {

RunSummary run_with(const std::vector<double>& accuracies, double seconds) {
  RunSummary run;
  for (size_t i = 0; i < accuracies.size(); ++i) {
    trace::EvalRecord eval;
    eval.epoch = static_cast<double>(i + 1);
    eval.accuracy = accuracies[i];
    eval.wall_seconds = seconds * eval.epoch;
    run.log.evals.push_back(eval);
    run.log.epochs.push_back(
        {.epoch = static_cast<int64_t>(i + 1), .train_loss = 1 - accuracies[i]});
  }
  return run;
}

TEST(Curves, TheMedianGoesAsFarAsAllRunsGoWithTheExtremesAsItsBand) {
  const RunSummary a = run_with({0.1, 0.5, 0.9}, 1), b = run_with({0.3, 0.4}, 2),
                   c = run_with({0.2, 0.8, 0.8, 0.9}, 3);
  const auto curve = quality_curve({&a, &b, &c}, "accuracy");
  ASSERT_EQ(curve.size(), 2u);  // b ended after two epochs
  EXPECT_EQ(curve[1].epoch, 2);
  EXPECT_DOUBLE_EQ(curve[1].median, 0.5);
  EXPECT_DOUBLE_EQ(curve[1].low, 0.4);
  EXPECT_DOUBLE_EQ(curve[1].high, 0.8);
  EXPECT_DOUBLE_EQ(curve[1].seconds, 4);
  EXPECT_TRUE(quality_curve({&a}, "mae").empty());
}

TEST(Curves, TheTrainingLossLeavesPartialEpochsOut) {
  RunSummary a = run_with({0.1, 0.5}, 1);
  a.log.epochs[0].partial = true;
  const auto curve = loss_curve({&a});
  ASSERT_EQ(curve.size(), 1u);
  EXPECT_EQ(curve[0].epoch, 2);
  EXPECT_DOUBLE_EQ(curve[0].median, 0.5);
}

TEST(Curves, ArrivalsAreWeightedByTheStepsTheyCompare) {
  RunSummary run;
  run.log.arrivals = {
      {.steps = 1000, .ranks = {0}, .last = {1000}, .late_ms = {99}, .waited_ms = 99},  // start-up
      {.steps = 30,
       .ranks = {1, 0},
       .last = {20, 10},
       .late_ms = {2, 1},
       .waited_ms = 4,
       .waited_for_late_ms = 1},
      {.steps = 10,
       .ranks = {1},
       .last = {10},
       .late_ms = {4},
       .waited_ms = 8,
       .waited_for_late_ms = 5}};
  const Lateness late = arrivals_of({&run});
  EXPECT_EQ(late.steps, 40);
  EXPECT_DOUBLE_EQ(late.waited_ms, 5);
  EXPECT_DOUBLE_EQ(late.waited_for_late_ms, 2);
  EXPECT_EQ(late.latest_rank, 1);
  EXPECT_DOUBLE_EQ(late.latest_share, 0.75);
  EXPECT_DOUBLE_EQ(late.latest_ms, 3);
  const RunSummary none;
  EXPECT_EQ(arrivals_of({&none}).steps, 0);
}

}  // namespace
}  // namespace tutti::study
