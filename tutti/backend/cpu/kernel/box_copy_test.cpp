#include "tutti/backend/cpu/kernel/box_copy.h"

#include <gtest/gtest.h>

#include <cmath>
#include <numeric>

#include "tutti/backend/cpu/simd/simd_math.h"

namespace tutti::backend {
namespace {

Layout layout_named(const char* name, int rank) {
  for (const Layout& layout : {Layout::plain(), Layout::channels_last(rank),
                               Layout::blocked_channels(16), Layout::blocked_channels(4)})
    if (layout.to_string(rank) == name) return layout;
  ADD_FAILURE() << name;
  return {};
}

/// Copies all of `from` into the channels from `first` on of `to`, and compares with the layouts'
/// own arithmetic.
void expect_copied(const TensorDesc& from, const TensorDesc& to, int64_t first) {
  BoxCopy::Terms target = terms_of(to);
  target[1].erase(target[1].begin(), target[1].begin() + first);
  target[1].resize(static_cast<size_t>(from.shape[1]));
  std::vector<float> source(static_cast<size_t>(from.elements())),
      copy(static_cast<size_t>(to.elements()), -1);
  std::iota(source.begin(), source.end(), 0.f);
  BoxCopy(terms_of(from), target).run(source.data(), copy.data(), sizeof(float));
  std::vector<float> want(copy.size(), -1);
  int64_t at[4];
  for (at[0] = 0; at[0] < from.shape[0]; ++at[0])
    for (at[1] = 0; at[1] < from.shape[1]; ++at[1])
      for (at[2] = 0; at[2] < from.shape[2]; ++at[2])
        for (at[3] = 0; at[3] < from.shape[3]; ++at[3]) {
          const int64_t there[4] = {at[0], at[1] + first, at[2], at[3]};
          want[static_cast<size_t>(to.layout.offset(to.shape, there))] =
              source[static_cast<size_t>(from.layout.offset(from.shape, at))];
        }
  EXPECT_EQ(copy, want) << from.to_string() << " into " << to.to_string() << " from channel "
                        << first;
}

TEST(BoxCopy, BetweenAnyTwoLayouts) {
  for (const char* a : {"plain", "last", "b16c", "b4c"})
    for (const char* b : {"plain", "last", "b16c", "b4c"})
      for (const int64_t first : {0, 16, 5})
        expect_copied({DType::f32, {2, 32, 3, 5}, layout_named(a, 4)},
                      {DType::f32, {2, 64, 3, 5}, layout_named(b, 4)}, first);
}

TEST(BoxCopy, KnowsThatNothingMoves) {
  const TensorDesc plain{DType::f32, {3, 4, 5, 6}, {}},
      last{DType::f32, {3, 4, 5, 6}, Layout::channels_last(4)},
      vectors{DType::f32, {3, 64, 1, 1}, Layout::channels_last(4)},
      plain_vectors{DType::f32, {3, 64, 1, 1}, {}};
  EXPECT_TRUE(BoxCopy(terms_of(plain), terms_of(plain)).in_place());
  EXPECT_FALSE(BoxCopy(terms_of(last), terms_of(plain)).in_place());
  EXPECT_TRUE(BoxCopy(terms_of(vectors), terms_of(plain_vectors)).in_place());
}

TEST(SimdMath, Logarithm) {
  for (float x = 1e-37f; x < 1e38f; x *= 1.37f) {
    const simd::Floats log = simd::log(simd::splat(x));
    EXPECT_NEAR(log[0], std::log(static_cast<double>(x)), 1e-7 + 2e-7 * std::abs(std::log(x))) << x;
  }
  EXPECT_EQ(simd::log(simd::splat(1.f))[3], 0.f);
  EXPECT_TRUE(std::isnan(simd::log(simd::splat(NAN))[0]));
  EXPECT_EQ(simd::log(simd::splat(INFINITY))[0], INFINITY);
}

}  // namespace
}  // namespace tutti::backend
