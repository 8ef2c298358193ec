#include "tutti/sync/virtual_clock.h"

#include <gtest/gtest.h>

namespace tutti::sync {
namespace {

/// One device per node: a step takes 3 s, and 1000 bytes to another node take one second.
VirtualClockSpec some_replay(int replicas) {
  VirtualClockSpec spec;
  spec.machine.step_seconds = 3;
  spec.machine.between = {.latency = 0, .seconds_per_byte = 1e-3};
  spec.replicas = replicas;
  spec.buckets.resize(2);
  for (exchange::Bucket& bucket : spec.buckets) bucket.bytes = 500;
  return spec;
}

double after(VirtualClock clock, int64_t steps) {
  for (int64_t step = 0; step < steps; ++step) clock.step(step);
  return clock.seconds();
}

TEST(VirtualClock, OneReplicaTakesItsSteps) {
  EXPECT_DOUBLE_EQ(after(VirtualClock(some_replay(1)), 4), 12);
}

TEST(VirtualClock, SumsOfGradientsHideBehindTheBackwardPass) {
  // Two replicas: an allreduce of b bytes is 2 * 1/2 * b ms. Buckets are made after 2 and 3 s: the
  // first one arrives at 2.5, the second at 3.5.
  EXPECT_DOUBLE_EQ(after(VirtualClock(some_replay(2)), 1), 3.5);
  VirtualClockSpec slow = some_replay(2);
  slow.machine.between.seconds_per_byte = 4e-3;  // each takes 2 s: 2 to 4, 4 to 6
  EXPECT_DOUBLE_EQ(after(VirtualClock(slow), 1), 6);
}

TEST(VirtualClock, ReplicasApartPayAtTheirMeetings) {
  VirtualClockSpec spec = some_replay(2);
  spec.sync = MeetingSettings{.every = 4};
  EXPECT_DOUBLE_EQ(after(VirtualClock(spec), 3), 9);
  EXPECT_DOUBLE_EQ(after(VirtualClock(spec), 8), 24 + 2 * 1);
  spec.sync->fragments = 2;  // the halves meet after steps 2, 4, 6, 8
  EXPECT_DOUBLE_EQ(after(VirtualClock(spec), 8), 24 + 4 * 0.5);
  spec.sync = MeetingSettings{.kind = MeetingKind::never};
  EXPECT_DOUBLE_EQ(after(VirtualClock(spec), 8), 24);
}

TEST(VirtualClock, AnAverageThatIsAppliedLateTravelsWhileStepsRun) {
  VirtualClockSpec spec = some_replay(2);
  spec.sync = MeetingSettings{.every = 2, .delay = 1};
  EXPECT_DOUBLE_EQ(after(VirtualClock(spec), 8), 24);
  // An average takes 8 s: of the meetings after 6, 14, 22 and 30 s each waits for the one before.
  spec.machine.between.seconds_per_byte = 8e-3;
  EXPECT_DOUBLE_EQ(after(VirtualClock(spec), 8), 30);
}

TEST(VirtualClock, ALateReplicaCostsTheOthersWhereTheyMeet) {
  VirtualClockSpec spec = some_replay(4);
  spec.machine.between.seconds_per_byte = 0;
  spec.machine.slow = {{.device = 2, .factor = 3}};
  EXPECT_DOUBLE_EQ(after(VirtualClock(spec), 4), 36) << "each step waits for it";
  VirtualClock clock(spec);
  EXPECT_DOUBLE_EQ(clock.step(0), 6 * 0.75);
}

TEST(VirtualClock, NeighboursWaitForEachOtherAlone) {
  VirtualClockSpec spec = some_replay(8);
  spec.machine.between.seconds_per_byte = 0;
  spec.machine.slow = {{.device = 0, .factor = 3}};
  spec.sync = MeetingSettings{.kind = MeetingKind::neighbours};
  // Replicas send the weights of the step's beginning, so none waits in the first step.
  EXPECT_DOUBLE_EQ(VirtualClock(spec).step(0), 0);
  VirtualClock clock(spec);
  clock.step(0);
  EXPECT_DOUBLE_EQ(clock.step(1), 2 * 3 / 8.0) << "two neighbours wait from 6 s to 9 s";
}

TEST(VirtualClock, WeightsOfNeighboursTravelWhileTheStepRuns) {
  VirtualClockSpec spec = some_replay(4);  // a message of 1000 bytes takes 1 s, two of a node 2 s
  spec.sync = MeetingSettings{.kind = MeetingKind::neighbours};
  EXPECT_DOUBLE_EQ(after(VirtualClock(spec), 5), 15);
  spec.machine.between.seconds_per_byte = 5e-3;
  EXPECT_DOUBLE_EQ(after(VirtualClock(spec), 5), 50);
  spec.machine.devices_per_node = 4;  // inside a node, messages use a device's own link
  spec.machine.inside.seconds_per_byte = 2e-3;
  EXPECT_DOUBLE_EQ(after(VirtualClock(spec), 5), 20);
}

TEST(VirtualClock, StepsTakeWhatWasMeasuredWhereTheMachineSaysSo) {
  VirtualClockSpec spec = some_replay(2);
  spec.machine.measured = true;
  spec.machine.slow = {{.device = 1, .factor = 2}};
  spec.sync = MeetingSettings{.kind = MeetingKind::never};
  VirtualClock clock(spec);
  clock.step(0, std::vector<double>{5, 1});
  EXPECT_DOUBLE_EQ(clock.seconds(), 5);
  clock.step(1, std::vector<double>{1, 4});
  EXPECT_DOUBLE_EQ(clock.seconds(), 10);
}

TEST(VirtualClock, CentresOfATreeAreMetByTheirChildrenAlone) {
  VirtualClockSpec spec = some_replay(4);  // a message takes 1 s; a node has one child elsewhere
  spec.sync = MeetingSettings{.kind = MeetingKind::tree, .every = 1, .children = 2, .up = 2};
  VirtualClock clock(spec);
  clock.step(0);  // two pairs: to the centre, ready there at 4 s, and back
  EXPECT_DOUBLE_EQ(clock.seconds(), 5);
  clock.step(1);  // pairs at 9 and 10 s, then their first ones: there and back
  EXPECT_DOUBLE_EQ(clock.seconds(), 11);
  spec.machine.between.seconds_per_byte = 0;
  spec.machine.slow = {{.device = 3, .factor = 2}};
  VirtualClock late(spec);
  EXPECT_DOUBLE_EQ(late.step(0), 3 / 4.0) << "its neighbour waits, the other pair does not";
}

TEST(VirtualClock, WhoGossipsWaitsForNobodyAndWhoHearsForWhatIsLate) {
  VirtualClockSpec spec = some_replay(2);  // a message takes 1 s, a step 3 s
  spec.sync = MeetingSettings{.kind = MeetingKind::gossip, .probability = 1};
  EXPECT_DOUBLE_EQ(after(VirtualClock(spec), 4), 12);
  spec.machine.between.seconds_per_byte = 5e-3;  // sent after step n, it delays step n + 1
  EXPECT_DOUBLE_EQ(after(VirtualClock(spec), 4), 3 + 3 * 5);
}

TEST(VirtualClock, WhatANodeSendsSharesItsLink) {
  // Both devices of one node send to the other node's device.
  VirtualClockSpec spec = some_replay(3);  // device 2 alone on its node
  spec.machine.devices_per_node = 2;
  spec.machine.between.seconds_per_byte = 4e-3;
  spec.sync = MeetingSettings{.kind = MeetingKind::gossip, .probability = 1};
  int64_t step = 0;
  while (gossip_to(*spec.sync, 3, 0, step) != 2 || gossip_to(*spec.sync, 3, 1, step) != 2) ++step;
  VirtualClock clock(spec);
  clock.step(step);
  clock.step(step + 1);
  EXPECT_DOUBLE_EQ(clock.seconds(), 3 + 2 * 4) << "two messages of 4 s, at the same time";
  // In a tree, messages inside the node do not use its link.
  VirtualClockSpec tree = some_replay(3);
  tree.machine.devices_per_node = 2;
  tree.machine.inside.seconds_per_byte = 0;
  tree.sync = MeetingSettings{.kind = MeetingKind::tree, .every = 1, .children = 3, .up = 1};
  EXPECT_DOUBLE_EQ(after(VirtualClock(tree), 1), 3 + 2 * 1) << "one of two children is elsewhere";
}

TEST(VirtualClock, GoesOnFromATime) {
  VirtualClock clock(some_replay(2));
  clock.resume(100);
  clock.step(7);
  EXPECT_DOUBLE_EQ(clock.seconds(), 103.5);
}

TEST(VirtualClock, GoesOnWithEachReplicaWhereItWas) {
  const std::vector<std::optional<MeetingSettings>> all{
      std::nullopt,
      MeetingSettings{.every = 3},
      MeetingSettings{.every = 2, .delay = 1},
      MeetingSettings{.kind = MeetingKind::never},
      MeetingSettings{.kind = MeetingKind::gossip, .probability = 0.7, .seed = 3},
      MeetingSettings{.kind = MeetingKind::neighbours},
      MeetingSettings{.kind = MeetingKind::tree, .every = 1, .children = 2, .up = 2}};
  for (size_t kind = 0; kind < all.size(); ++kind) {
    VirtualClockSpec spec = some_replay(4);
    spec.sync = all[kind];
    spec.machine.slow = {{.device = 1, .factor = 1.5}};
    VirtualClock whole(spec);
    std::vector<double> waited;
    for (int64_t step = 0; step < 9; ++step) waited.push_back(whole.step(step));
    for (int64_t cut = 1; cut < 9; ++cut) {
      VirtualClock first(spec), rest(spec);
      for (int64_t step = 0; step < cut; ++step) first.step(step);
      ASSERT_TRUE(rest.restore(first.state()));
      for (int64_t step = cut; step < 9; ++step)
        EXPECT_EQ(rest.step(step), waited[static_cast<size_t>(step)]) << kind << ", " << cut;
      EXPECT_EQ(rest.state(), whole.state()) << kind << ", " << cut;
    }
    VirtualClock fewer(some_replay(3));
    EXPECT_FALSE(fewer.restore(whole.state()));
    EXPECT_FALSE(fewer.restore({}));
    EXPECT_EQ(fewer.seconds(), 0);
  }
}

}  // namespace
}  // namespace tutti::sync
