#include "tutti/comm/transport/channel_numbers.h"

#include <gtest/gtest.h>

namespace tutti::comm {
namespace {

using End = ChannelNumbers::End;

// Exchanges the marks of both ranks.
void settle(ChannelNumbers& a, ChannelNumbers& b) {
  std::vector<uint64_t> all = a.marks();
  for (size_t n = 0; n < all.size(); ++n) all[n] = ChannelNumbers::fold(all[n], b.marks()[n]);
  a.settle(all);
  b.settle(all);
}

TEST(ChannelNumbers, ComeBackWhenAllRanksHaveClosedThem) {
  ChannelNumbers a, b;
  for (int n = 0; n < 3; ++n) EXPECT_EQ(a.take(), b.take());
  a.close(0, End::complete, 5);
  b.close(0, End::complete, 5);
  a.close(1, End::complete, 5);
  settle(a, b);
  EXPECT_EQ(a.taken(), 2u);
  EXPECT_EQ(a.take(), 0);
  EXPECT_EQ(b.take(), 0);
  EXPECT_EQ(a.take(), 3);
}

TEST(ChannelNumbers, AnUnfinishedChannelKeepsItsNumber) {
  ChannelNumbers a, b;
  for (int n = 0; n < 3; ++n) a.take(), b.take();
  a.close(0, End::abandoned, 5);
  b.close(0, End::complete, 5);
  a.close(1, End::complete, 6);  // a message of the sixth run may wait for its receiver
  b.close(1, End::complete, 5);
  a.close(2, End::complete, 5 + 253);  // a byte's worth of runs later
  b.close(2, End::complete, 5);
  settle(a, b);
  EXPECT_EQ(a.take(), 3);
}

TEST(ChannelNumbers, ARankWithoutMessagesAgreesWithAll) {
  ChannelNumbers a, b;
  a.take(), b.take();
  a.close(0, End::silent, 0);
  b.close(0, End::complete, 7);
  settle(a, b);
  EXPECT_EQ(a.taken(), 0u);
  EXPECT_EQ(b.taken(), 0u);
}

// A program that plans again and again, with a few operations alive at a time, takes few numbers
// and asks seldom.
TEST(ChannelNumbers, AreFewHoweverManyChannelsThereWere) {
  ChannelNumbers numbers;
  int largest = 0, asked = 0;
  for (int k = 0; k < 100'000; ++k) {
    if (numbers.due()) {
      const auto all = numbers.marks();
      numbers.settle(all);
      ++asked;
    }
    const int n = numbers.take();
    largest = std::max(largest, n);
    numbers.close(n, End::complete, 1);
  }
  EXPECT_LT(largest, 64);
  EXPECT_LE(asked, 100'000 / 64);
}

}  // namespace
}  // namespace tutti::comm
