#include "tutti/sync/stragglers.h"

#include <gtest/gtest.h>

namespace tutti::sync {
namespace {

/// A summary in which `rank` was the last in all of `steps` steps of 10 ms, by 1 ms.
comm::ArrivalSummary late(int rank, int64_t steps) {
  comm::ArrivalSummary summary;
  summary.steps = steps;
  summary.step_seconds = 0.01;
  summary.ranks = {
      {.rank = rank, .last = static_cast<int32_t>(steps), .median = 0.001, .worst = 0.002}};
  return summary;
}

}  // namespace

TEST(Stragglers, AHandfulOfStepsNamesNobody) {
  StragglerWatch watch;
  for (int report = 0; report < 8; ++report) EXPECT_EQ(watch.look(late(report % 2, 7)), -1);
  EXPECT_EQ(watch.look(late(0, 1000)), -1);  // one report, however long
}

TEST(Stragglers, ARankThatStaysLateIsNamedOnce) {
  StragglerWatch watch;
  EXPECT_EQ(watch.look(late(1, 25)), -1);
  EXPECT_EQ(watch.look(late(1, 25)), -1);
  EXPECT_EQ(watch.look(late(1, 25)), 1);
  EXPECT_EQ(watch.look(late(1, 25)), -1);
}

TEST(Stragglers, AGoodReportClearsTheSuspicion) {
  StragglerWatch watch;
  comm::ArrivalSummary good = late(1, 50);
  good.ranks.front().last = 10;
  for (int round = 0; round < 4; ++round) {
    EXPECT_EQ(watch.look(late(1, 50)), -1);
    EXPECT_EQ(watch.look(late(1, 50)), -1);
    EXPECT_EQ(watch.look(good), -1);
  }
}

}  // namespace tutti::sync
