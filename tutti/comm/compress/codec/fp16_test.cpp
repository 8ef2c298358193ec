#include "tutti/comm/compress/codec/fp16.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "tutti/base/numeric/rng.h"

namespace tutti::comm {
namespace {

float from_bits(uint32_t half) {
  fp16 value;
  value.bits = static_cast<uint16_t>(half);
  return static_cast<float>(value);
}

// The definition of the format.
double half_value(uint32_t half) {
  const int exponent = static_cast<int>(half >> 10 & 31);
  const double fraction = half & 1023;
  const double magnitude =
      exponent == 0 ? std::ldexp(fraction, -24) : std::ldexp(1024 + fraction, exponent - 25);
  return (half & 0x8000) != 0 ? -magnitude : magnitude;
}

// The definition of the rounding: units of the last place, as an integer to nearest even.
uint32_t rounded(float x) {
  const double magnitude = std::fabs(static_cast<double>(x));
  const int exponent = magnitude == 0 ? -14 : std::max(-14, std::ilogb(magnitude));
  const double units = std::nearbyint(std::ldexp(magnitude, 10 - exponent));
  const double bits = units + (exponent + 14) * 1024;  // the implicit bit counts one exponent
  return (bits >= 0x7C00 ? 0x7C00u : static_cast<uint32_t>(bits)) |
         (std::signbit(x) ? 0x8000u : 0u);
}

TEST(Fp16, EveryHalfGoesThereAndBack) {
  for (uint32_t half = 0; half < 0x10000; ++half) {
    const float value = from_bits(half);
    const uint32_t magnitude = half & 0x7FFF;
    if (magnitude > 0x7C00) {
      ASSERT_TRUE(std::isnan(value)) << half;
      ASSERT_EQ(fp16(value).bits, half | 0x200) << "NaN keeps sign and payload, and is quiet";
    } else {
      if (magnitude < 0x7C00) {
        ASSERT_EQ(static_cast<double>(value), half_value(half)) << half;
      } else {
        ASSERT_TRUE(std::isinf(value));
      }
      ASSERT_EQ(std::signbit(value), half >= 0x8000) << half;
      ASSERT_EQ(fp16(value).bits, half);
    }
  }
}

TEST(Fp16, TiesGoToEvenAndTheirNeighboursToTheNearest) {
  for (uint32_t half = 0; half < 0x7C00; ++half) {
    const double upper = half + 1 == 0x7C00 ? 65536 : half_value(half + 1);
    const auto middle =
        static_cast<float>((half_value(half) + upper) / 2);  // exact: one bit more than a half
    const uint32_t even = half % 2 == 0 ? half : half + 1;
    ASSERT_EQ(fp16(middle).bits, even) << half;
    ASSERT_EQ(fp16(-middle).bits, even | 0x8000) << half;
    ASSERT_EQ(fp16(std::nextafter(middle, 0.0f)).bits, half);
    ASSERT_EQ(fp16(std::nextafter(middle, 1e9f)).bits, half + 1);
  }
}

TEST(Fp16, AnyFloatIsRoundedByTheDefinition) {
  Rng rng(7, Purpose::test, 16);
  for (int i = 0; i < 200000; ++i) {
    const float any = std::bit_cast<float>(rng.next_u32());
    const float inside = std::ldexp(rng.normal(), static_cast<int>(rng.below(48)) - 28);
    for (const float x : {any, inside}) {
      if (std::isnan(x)) continue;
      ASSERT_EQ(fp16(x).bits, rounded(x)) << x;
    }
  }
}

TEST(Fp16, OverflowIsInfinite) {
  EXPECT_EQ(fp16(65504.0f).bits, 0x7BFF);
  EXPECT_EQ(fp16(65519.996f).bits, 0x7BFF);
  EXPECT_EQ(fp16(65520.0f).bits, 0x7C00);
  EXPECT_EQ(fp16(-1e30f).bits, 0xFC00);
  EXPECT_EQ(fp16(std::numeric_limits<float>::infinity()).bits, 0x7C00);
  EXPECT_EQ(fp16(std::numeric_limits<float>::denorm_min()).bits, 0);
  EXPECT_TRUE(std::isnan(static_cast<float>(fp16(std::bit_cast<float>(0x7F800001u)))))
      << "a payload that a half has no room for";
}

}  // namespace
}  // namespace tutti::comm
