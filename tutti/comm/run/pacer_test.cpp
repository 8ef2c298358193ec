#include "tutti/comm/run/pacer.h"

#include <gtest/gtest.h>

namespace tutti::comm {
namespace {

constexpr size_t kHalf = Pacer::kLeastWindow / 2;

TEST(Pacer, BytesAreBoundedOverAllOperationsAndTheMostUrgentBeginsFirst) {
  Pacer pacer;
  Pacer::Flow low, high;
  pacer.enter(low, 0);
  pacer.enter(high, 1);
  const auto now = Pacer::Clock::now();  // later events count as recent, however slow this test is
  pacer.note(low, kHalf, 0, true);
  pacer.note(high, 0, 0, true);
  EXPECT_TRUE(pacer.may_begin(high, now));
  EXPECT_FALSE(pacer.may_begin(low, now)) << "the more urgent one has some left to begin";
  pacer.note(high, kHalf, 0, true);
  EXPECT_FALSE(pacer.may_begin(high, now)) << "a window full of bytes is leaving";
  pacer.note(high, kHalf, 0, false);
  pacer.note(low, 0, 0, true);
  EXPECT_TRUE(pacer.may_begin(low, now));
  pacer.note(high, 2 * kHalf, 0, false);
  EXPECT_FALSE(pacer.may_begin(low, now));
  pacer.leave(high);
  EXPECT_TRUE(pacer.may_begin(low, now));
  pacer.leave(low);
}

TEST(Pacer, WhoseReceiverDoesNotComeHoldsUpNobody) {
  Pacer pacer;
  Pacer::Flow low, high;
  pacer.enter(low, 0);
  pacer.enter(high, 1);
  pacer.note(high, 2 * kHalf, 0, true);
  const auto now = Pacer::Clock::now();
  EXPECT_FALSE(pacer.may_begin(low, now));
  EXPECT_TRUE(pacer.may_begin(low, now + std::chrono::milliseconds(60)));
}

TEST(Pacer, TheWindowGrowsWhereALookFindsTheLinkIdleAndShrinksAgain) {
  Pacer pacer;
  Pacer::Flow flow;
  pacer.enter(flow, 0);
  pacer.note(flow, 2 * kHalf, 1, true);
  pacer.look_over();
  EXPECT_FALSE(pacer.may_begin(flow));
  pacer.note(flow, 2 * kHalf, 0, true);
  pacer.look_over();
  EXPECT_TRUE(pacer.may_begin(flow));
  for (int k = 0; k < 10; ++k) pacer.look_over();
  EXPECT_EQ(pacer.window(), Pacer::kMostWindow);
  pacer.note(flow, 0, 1, true);
  for (int k = 0; k < 10'000; ++k) {
    pacer.look_over();
    EXPECT_TRUE(pacer.may_begin(flow));
  }
  EXPECT_EQ(pacer.window(), Pacer::kLeastWindow);
}

}  // namespace
}  // namespace tutti::comm
