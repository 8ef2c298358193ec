#include "tutti/base/random_bits.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cerrno>
#include <vector>

#include "tutti/base/refused_calls.h"

namespace tutti {
namespace {

TEST(RandomBits, AllOfALongRoomAreDrawn) {
  std::vector<std::byte> bits(1 << 20);  // the kernel may give fewer per call
  ASSERT_TRUE(fill_random(bits));
  for (auto at = bits.begin(); at < bits.end(); at += 1024)
    EXPECT_NE(std::count(at, at + 1024, std::byte{0}), 1024);
  EXPECT_TRUE(fill_random({}));
}

TEST(RandomBits, ARefusalIsSaid) {
  EXPECT_EQ(with_refused({SYS_getrandom}, EPERM,
                         [] {
                           std::byte bits{};
                           return !fill_random({&bits, 1}) && errno == EPERM;
                         }),
            0);
}

}  // namespace
}  // namespace tutti
