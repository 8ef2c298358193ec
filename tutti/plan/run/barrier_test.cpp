#include "tutti/plan/run/barrier.h"

#include <gtest/gtest.h>

#include <vector>

namespace tutti::plan {
namespace {

// The barrier's counter would overflow only after hours; this type would after moments.
TEST(LimitedCount, StandsStillAtItsLimit) {
  LimitedCount<signed char> count(100);
  int yes = 0;
  for (int look = 0; look < 100'000; ++look) {
    const bool more = count.next();
    EXPECT_EQ(more, look < 100);
    yes += more;
  }
  EXPECT_EQ(yes, 100);
}

TEST(Barrier, NobodyPassesBeforeTheLastOneComes) {
  constexpr int kThreads = 3, kRounds = 200;
  Barrier barrier(kThreads);
  std::vector<int> came(kThreads, 0);
  std::vector<std::thread> team;
  std::atomic<int> early{0};
  for (int t = 0; t < kThreads; ++t)
    team.emplace_back([&, t] {
      for (int round = 1; round <= kRounds; ++round) {
        came[static_cast<size_t>(t)] = round;
        barrier.wait();
        for (const int other : came) early += other != round;
        barrier.wait();
      }
    });
  for (std::thread& thread : team) thread.join();
  EXPECT_EQ(early, 0);
}

TEST(Barrier, WhoWaitsHearsThatItIsBroken) {
  Barrier barrier(2);
  std::thread waits([&] { EXPECT_THROW(barrier.wait(), Barrier::Broken); });
  barrier.break_up();
  waits.join();
}

}  // namespace
}  // namespace tutti::plan
