#include "tutti/base/numeric/normals.h"

#include <gtest/gtest.h>

#include <bit>
#include <vector>

namespace tutti {
namespace {

/// Returns how many of `count` numbers differ in a bit from numbers drawn one after the other.
int64_t different(const NormalStream& stream, uint64_t first, size_t count) {
  std::vector<float> many(count);
  fill_normals(stream, first, many);
  Rng rng(stream.seed, stream.purpose, stream.stream);
  rng.skip(2 * first);
  int64_t wrong = 0;
  for (const float x : many)
    wrong += std::bit_cast<uint32_t>(x) != std::bit_cast<uint32_t>(rng.normal()) ? 1 : 0;
  return wrong;
}

}  // namespace

/// About eight of these are between floats, and are drawn alone.
TEST(Normals, HaveTheBitsOfThoseDrawnOneAfterTheOther) {
  EXPECT_EQ(different({1, Purpose::weights, 0x123456789abcdef}, 0, 1 << 20), 0);
  EXPECT_EQ(different({(uint64_t{7} << 32) + 3, Purpose::test, 0}, 1 << 20, 1 << 20), 0);
}

/// Angles next to a quarter turn, where the cosine is only the rounding error.
TEST(Normals, HaveTheBitsWhereTheCosineVanishes) {
  constexpr uint64_t kStep = 0x9e3779b97f4a7c15;
  EXPECT_EQ(different({2 * 77 + 1, Purpose::weights, 2 * kStep}, 2048244, 1), 0);
  EXPECT_EQ(different({55 * 77 + 1, Purpose::weights, 55 * kStep}, 761342, 1), 0);
  EXPECT_EQ(different({62 * 77 + 1, Purpose::weights, 62 * kStep}, 2135194, 1), 0);
}

TEST(Normals, BeginAndEndAnywhere) {
  const NormalStream stream{5, Purpose::weights, 11};
  for (const uint64_t first : {0, 1, 2, 511, 512, 100'001})
    for (const size_t count : {0, 1, 2, 3, 511, 512, 513, 1030})
      EXPECT_EQ(different(stream, first, count), 0) << first << ", " << count;
  EXPECT_EQ(different(stream, uint64_t{1} << 34, 600), 0);  // counters of more than 32 bits
}

}  // namespace tutti
