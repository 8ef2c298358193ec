#include "tutti/sync/server_clock.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace tutti::sync {
namespace {

/// One device per node: a step takes 3 s, and 1000 bytes to another node take one second.
ServerClockSpec some_servers(int workers) {
  ServerClockSpec spec;
  spec.machine.step_seconds = 3;
  spec.machine.between = {.latency = 0, .seconds_per_byte = 1e-3};
  spec.workers = workers;
  spec.buckets.resize(2);
  for (exchange::Bucket& bucket : spec.buckets) bucket.bytes = 500;
  return spec;
}

ServerClockSpec uneven_servers(int workers) {
  ServerClockSpec spec = some_servers(workers);
  spec.machine.sigma = 0.5;
  spec.machine.slow = {{.device = 1, .factor = 4}};
  spec.seed = 3;
  return spec;
}

/// Messages take no time; the third worker's steps take four times as long.
ServerClockSpec one_slow_of_four() {
  ServerClockSpec spec = some_servers(4);
  spec.machine.between = {};
  spec.machine.slow = {{.device = 2, .factor = 4}};
  return spec;
}

TEST(ServerClock, BucketsTravelWhileOthersAreMade) {
  ServerClock clock(some_servers(1));
  // Buckets are made after 2 and 3 s and arrive after 2.5 and 3.5 s; the weights return in a
  // second.
  clock.next();
  EXPECT_DOUBLE_EQ(clock.seconds(), 3.5);
  EXPECT_DOUBLE_EQ(clock.take_waited(), 1.5);
  clock.next();
  EXPECT_DOUBLE_EQ(clock.seconds(), 8);
  EXPECT_DOUBLE_EQ(clock.take_counts().bytes, 2000 + 2000) << "the weights have left twice";
}

TEST(ServerClock, WorkersShareTheLinkOfTheirServer) {
  ServerClock clock(some_servers(4));
  // Four first halves, sent from 2 s on, take 2 s one after another; so do the second halves.
  for (int w = 0; w < 4; ++w) EXPECT_EQ(clock.next().worker, w);
  EXPECT_DOUBLE_EQ(clock.seconds(), 6);
  ServerClockSpec spec = some_servers(4);
  spec.servers = 2;  // each holds half of the weights
  ServerClock two(spec);
  for (int w = 0; w < 4; ++w) two.next();
  EXPECT_DOUBLE_EQ(two.seconds(), 5);
  spec.servers = 5;  // each half is more than a fifth: split over all, 0.1 s each
  ServerClock five(spec);
  for (int w = 0; w < 4; ++w) five.next();
  EXPECT_NEAR(five.seconds(), 3 + 5 * 0.1 + 3 * 0.1, 1e-9) << "one server after another";
}

TEST(ServerClock, GradientsAreOfTheVersionThatTheirWorkerTook) {
  ServerClock clock(some_servers(3));
  for (int n = 0; n < 30; ++n) {
    const ArrivedGradient g = clock.next();
    EXPECT_EQ(g.version, n);
    EXPECT_EQ(g.version - g.read, std::min(n, 2)) << "the two others have come between";
    EXPECT_EQ(g.served, std::vector<int>{g.worker});
  }
}

TEST(ServerClock, ALateWorkerKeepsNobodyUnlessItIsBound) {
  ServerClockSpec spec = one_slow_of_four();
  ServerClock clock(spec);
  for (int n = 0; n < 13 * 4; ++n) clock.next();
  EXPECT_DOUBLE_EQ(clock.seconds(), 16 * 3) << "three workers do 16 steps and one does 4";
  EXPECT_EQ(clock.steps(2), 4);
  spec.bound = 0;
  ServerClock bound(spec);
  for (int n = 0; n < 4 * 4; ++n) bound.next();
  EXPECT_DOUBLE_EQ(bound.seconds(), 4 * 12);
}

TEST(ServerClock, NobodyBeginsAStepFurtherAheadThanTheBound) {
  for (const int64_t bound : {0, 1, 3}) {
    ServerClockSpec spec = uneven_servers(5);
    spec.bound = bound;
    ServerClock clock(spec);
    int64_t furthest = 0;
    for (int n = 0; n < 400; ++n)
      for (const int w : clock.next().served) {
        int64_t slowest = clock.steps(0);
        for (int other = 1; other < 5; ++other) slowest = std::min(slowest, clock.steps(other));
        furthest = std::max(furthest, clock.steps(w) - slowest);
      }
    EXPECT_EQ(furthest, bound) << "and it is reached";
  }
}

TEST(ServerClock, AQuorumDoesNotWaitForTheLast) {
  ServerClockSpec spec = one_slow_of_four();
  spec.quorum = 3;
  ServerClock clock(spec);
  int dropped = 0, updates = 0;
  while (updates < 12) {
    const ArrivedGradient g = clock.next();
    dropped += g.dropped;
    updates += g.updates;
    EXPECT_EQ(g.dropped, g.worker == 2);
    EXPECT_EQ(g.dropped, g.read < g.version);
  }
  EXPECT_DOUBLE_EQ(clock.seconds(), 12 * 3);
  EXPECT_EQ(clock.take_counts().dropped, dropped);
  EXPECT_EQ(dropped, 3) << "each of its gradients, three steps late";
  spec.quorum = 4;
  ServerClock all(spec);
  for (updates = 0; updates < 4;) updates += all.next().updates;
  EXPECT_DOUBLE_EQ(all.seconds(), 4 * 12);
}

TEST(ServerClock, AGroupIsAsSlowAsItsSlowestAndSumsWithin) {
  ServerClockSpec spec = some_servers(2);
  spec.group = 2;
  spec.machine.between.seconds_per_byte = 0;
  spec.machine.slow = {{.device = 3, .factor = 3}};
  ServerClock clock(spec);
  EXPECT_EQ(clock.next().worker, 0);
  EXPECT_DOUBLE_EQ(clock.seconds(), 3);
  while (clock.next().worker != 1) {}
  EXPECT_DOUBLE_EQ(clock.seconds(), 9);
  spec = some_servers(1);
  spec.group = 2;
  // Summing each half, made after 2 and 3 s, takes half a second, and sending it as much.
  ServerClock alone(spec);
  alone.next();
  EXPECT_DOUBLE_EQ(alone.seconds(), 4);
}

TEST(ServerClock, AtTheEndOfARoundAllMeet) {
  ServerClockSpec spec = one_slow_of_four();
  spec.round = 16;
  ServerClock clock(spec);
  // The slow worker makes two gradients, since it has taken two tickets; the others finish the rest
  // after 15 s, and wait for its second one until 24 s.
  for (int round = 1; round <= 2; ++round) {
    ArrivedGradient g;
    std::vector<int64_t> ages;  // the slow worker's
    for (int n = 0; n < 16; ++n) {
      EXPECT_LT(g.served.size(), 4U) << "before all are there";
      g = clock.next();
      if (g.worker == 2) ages.push_back(g.version - g.read);
      if (n == 14) {
        EXPECT_DOUBLE_EQ(clock.seconds(), (round - 1) * 24 + 15);
      }
    }
    EXPECT_EQ(g.worker, 2) << "the last one";
    EXPECT_EQ(ages, (std::vector<int64_t>{11, 3}));
    EXPECT_EQ(g.served, (std::vector<int>{0, 1, 2, 3}));
    EXPECT_DOUBLE_EQ(clock.seconds(), round * 24);
    for (int w = 0; w < 4; ++w) {
      EXPECT_EQ(clock.version(w), round * 16);
      EXPECT_FALSE(clock.waits(w));
    }
  }
  EXPECT_EQ(clock.take_counts().updates, 32);
}

TEST(ServerClock, AMeetingCostsASumOfWeightsAndStates) {
  ServerClockSpec spec = some_servers(2);
  spec.round = 2;
  spec.state_bytes = 2000;
  ServerClock clock(spec);
  clock.next();
  clock.next();
  // Halves from both workers arrive after 2.5, 3, 3.5 and 4 s; 3000 bytes are summed over two.
  EXPECT_DOUBLE_EQ(clock.seconds(), 4 + spec.machine.allreduce_seconds(3000, 2));
  // Each has computed for 3 s and waited for the remaining time.
  EXPECT_DOUBLE_EQ(clock.take_waited(), clock.seconds() - 3);
}

TEST(ServerClock, RoundsLoseNoGradientWhateverIsLate) {
  for (const int64_t bound : {-1, 0, 2}) {
    ServerClockSpec spec = uneven_servers(5);
    if (bound >= 0) spec.bound = bound;
    spec.round = 20;
    ServerClock clock(spec);
    for (int64_t n = 0; n < 200; ++n) {
      const ArrivedGradient g = clock.next();
      EXPECT_EQ(g.version, n);
      EXPECT_GE(g.read, n / 20 * 20) << "weights of this round";
      EXPECT_EQ(g.served.size() == 5 && clock.steps(0) == 0, n % 20 == 19);
    }
    EXPECT_EQ(clock.version(), 200);
  }
}

TEST(ServerClock, GoesOnFromItsNumbers) {
  ServerClockSpec spec = uneven_servers(5);
  spec.bound = 2;
  spec.servers = 2;
  spec.round = 30;
  ServerClock clock(spec);
  for (int n = 0; n < 77; ++n) clock.next();
  (void)clock.take_counts();
  ServerClock other(spec);
  ASSERT_TRUE(other.restore(clock.state()));
  for (int n = 0; n < 100; ++n) {
    const ArrivedGradient a = clock.next(), b = other.next();
    ASSERT_EQ(a.worker, b.worker);
    ASSERT_EQ(a.read, b.read);
    ASSERT_EQ(a.served, b.served);
    ASSERT_EQ(clock.seconds(), other.seconds());
  }
  EXPECT_EQ(clock.take_counts().spread, other.take_counts().spread);
  spec.workers = 4;
  EXPECT_FALSE(ServerClock(spec).restore(clock.state()));
}

}  // namespace
}  // namespace tutti::sync
