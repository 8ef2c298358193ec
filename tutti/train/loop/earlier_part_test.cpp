#include "tutti/train/loop/earlier_part.h"

#include <gtest/gtest.h>

namespace tutti::train {
namespace {

keep::CheckpointInfo checkpoint_of(int64_t step) {
  keep::CheckpointInfo info{};
  info.step = step;
  info.metrics = {{kWallSeconds, 11.5}, {kTrainSeconds, 8}};
  return info;
}

trace::RunLog two_epochs() {
  trace::RunLog log;
  log.evals = {{.epoch = 1, .step = 4, .accuracy = 0.325, .seconds = 1},
               {.epoch = 2, .step = 8, .accuracy = 0.225, .seconds = 2},
               {.epoch = 3, .step = 12, .accuracy = 0.9, .seconds = 4}};
  log.checkpoints = {{.step = 4, .seconds = 0.25}, {.step = 8, .seconds = 0.5}};
  return log;
}

TEST(EarlierPart, AfterAKillTheRecordTellsWhatTheCheckpointCannot) {
  const EarlierPart part = earlier_part(checkpoint_of(8), two_epochs(), std::nullopt);
  EXPECT_EQ(part.train_seconds, 8);
  EXPECT_EQ(part.eval_seconds, 3);
  EXPECT_EQ(part.checkpoint_seconds, 0.75);
  EXPECT_EQ(part.wall_seconds, 11.75);
}

TEST(EarlierPart, AfterAnOrderlyEndTheClocksStandAsItSays) {
  trace::RunLog log = two_epochs();
  log.stop = trace::RunStop{.steps = 8,
                            .wall_seconds = 12,
                            .train_seconds = 8.125,
                            .eval_seconds = 3,
                            .checkpoint_seconds = 0.875};
  EXPECT_EQ(earlier_part(checkpoint_of(8), log, std::nullopt).wall_seconds, 12);
  EXPECT_EQ(earlier_part(checkpoint_of(8), log, std::nullopt).train_seconds, 8.125);
  EXPECT_EQ(earlier_part(checkpoint_of(4), log, std::nullopt).train_seconds, 8)
      << "it ended elsewhere";
  log.stop->status = trace::RunStatus::failed;
  EXPECT_EQ(earlier_part(checkpoint_of(8), log, std::nullopt).train_seconds, 8);
}

TEST(EarlierPart, OfABranchTheCheckpointAloneIsKnown) {
  EXPECT_EQ(earlier_part(checkpoint_of(8), {}, trace::Target{.value = 0.1}).wall_seconds, 11.5);
  EXPECT_FALSE(earlier_part(checkpoint_of(8), {}, trace::Target{.value = 0.1}).reached);
}

TEST(EarlierPart, TheFirstEvaluationThatReachedTheTarget) {
  const EarlierPart part =
      earlier_part(checkpoint_of(8), two_epochs(), trace::Target{.value = 0.3});
  ASSERT_TRUE(part.reached);
  EXPECT_EQ(part.reached->epoch, 1);
  EXPECT_EQ(part.reached->best, 0.325);
  EXPECT_EQ(
      earlier_part(checkpoint_of(12), two_epochs(), trace::Target{.value = 0.3}).reached->best,
      0.9);
  EXPECT_FALSE(earlier_part(checkpoint_of(8), two_epochs(), trace::Target{.value = 0.5}).reached)
      << "of a void step";
  EXPECT_FALSE(earlier_part(checkpoint_of(8), two_epochs(), std::nullopt).reached);
  const EarlierPart read = earlier_part_from_text(to_text(part));
  ASSERT_TRUE(read.reached);
  EXPECT_EQ(read.reached->value, 0.325);
  EXPECT_EQ(read.reached->best, 0.325);
  EXPECT_EQ(read.wall_seconds, part.wall_seconds);
  EXPECT_TRUE(read.evaluated);
  EXPECT_FALSE(earlier_part(checkpoint_of(6), two_epochs(), std::nullopt).evaluated);
}

}  // namespace
}  // namespace tutti::train
