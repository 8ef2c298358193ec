#include "tutti/comm/compress/codec/codec.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>

#include "tutti/base/error.h"
#include "tutti/base/expect_text.h"
#include "tutti/base/numeric/rng.h"
#include "tutti/comm/compress/codec/codec_samples.h"
#include "tutti/comm/compress/codec/fp16.h"
#include "tutti/tensor/dtype.h"

namespace tutti::comm {
namespace {

constexpr const char* kAll[] = {"bf16", "fp16", "int8", "onebit", "topk:0.01", "topk:1"};
constexpr size_t kSizes[] = {1, 2, 7, 255, 256, 257, 1023, 1024, 1025, 3001};

Bytes encoded(const Codec& codec, const Floats& x, uint64_t step = 0) {
  Bytes out(codec.encoded_bytes(x.size()));
  codec.encode(x, out, step);
  return out;
}

Floats decoded(const Codec& codec, const Bytes& in, size_t n) {
  Floats y(n, 42.0f);
  codec.decode(in, y);
  return y;
}

Floats there_and_back(const Codec& codec, const Floats& x) {
  return decoded(codec, encoded(codec, x), x.size());
}

TEST(Codec, NamesMakeTheSameCodecAgain) {
  for (const char* spec : kAll) {
    EXPECT_EQ(make_codec(spec)->name(), spec);
    EXPECT_EQ(make_codec(make_codec(spec)->name())->encoded_bytes(12345),
              make_codec(spec)->encoded_bytes(12345));
  }
  EXPECT_EQ(make_codec("topk:1e-3")->name(), "topk:0.001");
}

TEST(Codec, UnknownOnesAreRefusedWithTheList) {
  for (const char* spec : {"", "gzip", "INT8", "int8:4", "topk", "bf16 "})
    EXPECT_TRUE(throws<ConfigError>({"bf16, fp16, int8, onebit, topk:RATIO"}, [&] {
      make_codec(spec);
    })) << spec;
  for (const char* spec : {"topk:", "topk:0", "topk:-0.1", "topk:1.01", "topk:nan", "topk:inf",
                           "topk:0.1x", "topk:1%"})
    EXPECT_THROW(make_codec(spec), ConfigError) << spec;
}

TEST(Codec, BytesOnTheWire) {
  const auto bytes = [](const char* spec, size_t count) {
    return make_codec(spec)->encoded_bytes(count);
  };
  for (const char* spec : kAll) EXPECT_EQ(bytes(spec, 0), 0u) << spec;
  EXPECT_EQ(bytes("bf16", 1001), 2002u);
  EXPECT_EQ(bytes("fp16", 1001), 2002u);
  EXPECT_EQ(bytes("int8", 1), 5u);
  EXPECT_EQ(bytes("int8", 256), 260u);
  EXPECT_EQ(bytes("int8", 257), 265u);
  EXPECT_EQ(bytes("onebit", 1), 9u);
  EXPECT_EQ(bytes("onebit", 1024), 136u);
  EXPECT_EQ(bytes("onebit", 1033), 136u + 8 + 2);
  EXPECT_EQ(bytes("topk:0.01", 1), 8u) << "at least one";
  EXPECT_EQ(bytes("topk:0.01", 149), 8u);
  EXPECT_EQ(bytes("topk:0.01", 150), 16u) << "rounded";
  EXPECT_EQ(bytes("topk:1", 150), 1200u);
}

TEST(Codec, ErrorOfARoundTripIsWithinItsBound) {
  for (const size_t n : kSizes) {
    const Floats x = random_values(n, n, 0.01f);
    const Floats b = there_and_back(*make_codec("bf16"), x);
    const Floats h = there_and_back(*make_codec("fp16"), x);
    const Floats q = there_and_back(*make_codec("int8"), x);
    for (size_t i = 0; i < n; ++i) {
      float largest = 0;
      for (size_t j = i / 256 * 256; j < std::min(n, i / 256 * 256 + 256); ++j)
        largest = std::max(largest, std::fabs(x[j]));
      ASSERT_LE(std::fabs(b[i] - x[i]), std::fabs(x[i]) * 0x1p-8f);
      ASSERT_LE(std::fabs(h[i] - x[i]), std::max(std::fabs(x[i]) * 0x1p-11f, 0x1p-25f));
      ASSERT_LE(std::fabs(q[i] - x[i]), largest / 254 * 1.0001f);
    }
    EXPECT_TRUE(same_bits(there_and_back(*make_codec("topk:1"), x), x)) << n;
  }
}

// Every lane of the vector code must do the same as the single conversion, also for special values.
TEST(Codec, HalvesAreTheElementsRoundedOneByOne) {
  Rng rng(7, Purpose::test, 9);
  Floats x(5000);
  for (float& value : x) value = std::bit_cast<float>(rng.next_u32());
  const Floats special{0,     -0.0f, kNan,  kInf,   -kInf,        1e-45f,       6e-8f,
                       3e-5f, 65504, 65520, -65520, 1 + 0x1p-11f, 1 + 0x3p-11f, 3.4e38f};
  for (size_t i = 0; i < 1400; ++i) x[3 * i] = special[i % special.size()];
  const Bytes b = encoded(*make_codec("bf16"), x);
  const Bytes h = encoded(*make_codec("fp16"), x);
  const Floats from_b = decoded(*make_codec("bf16"), b, x.size());
  const Floats from_h = decoded(*make_codec("fp16"), h, x.size());
  for (size_t i = 0; i < x.size(); ++i) {
    ASSERT_EQ(std::memcmp(&b[2 * i], std::array{bf16(x[i])}.data(), 2), 0) << x[i];
    ASSERT_EQ(std::memcmp(&h[2 * i], std::array{fp16(x[i])}.data(), 2), 0) << x[i];
    ASSERT_EQ(std::bit_cast<uint32_t>(from_b[i]),
              std::bit_cast<uint32_t>(static_cast<float>(bf16(x[i]))))
        << x[i];
    ASSERT_EQ(std::bit_cast<uint32_t>(from_h[i]),
              std::bit_cast<uint32_t>(static_cast<float>(fp16(x[i]))))
        << x[i];
  }
}

TEST(Codec, Int8OfWholeMultiplesOfTheScaleIsExact) {
  Floats x(256);
  for (size_t i = 0; i < 256; ++i) x[i] = 0.5f * static_cast<float>(static_cast<int>(i) - 128);
  x[0] = 63.5f;  // the range is -127 .. 127
  EXPECT_TRUE(same_bits(there_and_back(*make_codec("int8"), x), x));
  EXPECT_EQ(there_and_back(*make_codec("int8"), {127, 0.5f, 1.5f, 2.5f, -0.5f, -1.5f}),
            (Floats{127, 0, 2, 2, 0, -2}))
      << "ties to even";
}

TEST(Codec, Int8OfNothingOrNextToNothingIsZero) {
  Floats x(300, 0.0f);
  x[299] = 1e-36f;  // the second block: its scale would be subnormal
  x[257] = -std::numeric_limits<float>::denorm_min();
  EXPECT_TRUE(same_bits(there_and_back(*make_codec("int8"), x), Floats(300, 0.0f)));
  x[0] = std::numeric_limits<float>::max();
  EXPECT_FLOAT_EQ(there_and_back(*make_codec("int8"), x)[0], x[0])
      << "no overflow at the other end";
}

TEST(Codec, OnebitSendsSignsAndMeans) {
  const auto codec = make_codec("onebit");
  EXPECT_EQ(there_and_back(*codec, {1, -4, 2, 0, -2, 5, 0, -3, 4, -3}),
            (Floats{2, -3, 2, 2, -3, 2, 2, -3, 2, -3}));
  EXPECT_EQ(there_and_back(*codec, {-1, -3}), (Floats{-2, -2})) << "an empty group";
  EXPECT_EQ(there_and_back(*codec, {0, 0, 0}), (Floats{0, 0, 0}));
  Floats two_blocks(1025, 3.0f);
  two_blocks[1024] = -7;
  EXPECT_EQ(there_and_back(*codec, two_blocks), two_blocks) << "each block has its own means";
  EXPECT_EQ(there_and_back(*codec, Floats(1024, std::numeric_limits<float>::max()))[1023],
            std::numeric_limits<float>::max());
}

TEST(Codec, WhatIsNotFiniteIsNeverHidden) {
  for (const char* spec : kAll)
    for (const float bad : {kNan, -kNan, kInf, -kInf})
      for (const size_t at : {size_t{0}, size_t{300}, size_t{1999}}) {
        Floats x = random_values(2000, 3, 0.01f);
        x[at] = bad;
        const Floats y = there_and_back(*make_codec(spec), x);
        ASSERT_FALSE(std::isfinite(y[at])) << spec << " " << bad << " at " << at;
        ASSERT_TRUE(std::isnan(y[at]) || !std::isnan(bad)) << spec;
        const size_t block = std::string_view(spec) == "int8"     ? 256
                             : std::string_view(spec) == "onebit" ? 1024
                                                                  : 1;
        for (size_t i = 0; i < x.size(); ++i) {
          if (i / block == at / block)
            ASSERT_FALSE(std::isfinite(y[i]))
                << spec << " poisons the block of " << at << " at " << i;
          else
            ASSERT_TRUE(std::isfinite(y[i])) << spec << " leaves the others alone";
        }
      }
}

TEST(Codec, AddsTheSameBitsThatItDecodes) {
  for (const char* spec : kAll)
    for (const size_t n : kSizes) {
      const auto codec = make_codec(spec);
      const Bytes bytes = encoded(*codec, random_values(n, 2 * n, 0.01f));
      const Floats y = decoded(*codec, bytes, n);
      Floats expected = random_values(n, 3 * n, 0.01f);
      Floats sum = expected;
      for (size_t i = 0; i < n; ++i) expected[i] += y[i];
      codec->add_decoded(bytes, sum);
      ASSERT_TRUE(same_bits(sum, expected)) << spec << " " << n;
      for (size_t i = 0; i < n; ++i) expected[i] -= y[i];
      codec->add_decoded(bytes, sum, -1);
      ASSERT_TRUE(same_bits(sum, expected)) << spec << " " << n;
    }
}

TEST(Codec, BytesMayLieAnywhere) {
  for (const char* spec : kAll) {
    const auto codec = make_codec(spec);
    const Floats x = random_values(1500, 5, 0.01f);
    const Bytes bytes = encoded(*codec, x);
    Bytes shifted(bytes.size() + 1);
    codec->encode(x, std::span(shifted).subspan(1));
    EXPECT_EQ(std::memcmp(bytes.data(), shifted.data() + 1, bytes.size()), 0) << spec;
    Floats y(1500);
    codec->decode(std::span<const std::byte>(shifted).subspan(1), y);
    EXPECT_TRUE(same_bits(y, decoded(*codec, bytes, 1500))) << spec;
  }
}

TEST(Codec, WrongSizesAreBugs) {
  for (const char* spec : kAll) {
    const auto codec = make_codec(spec);
    Floats x(1000, 1.0f);
    Bytes bytes(codec->encoded_bytes(1000) + 1);
    EXPECT_THROW(codec->encode(x, bytes), InternalError) << spec;
    EXPECT_THROW(codec->decode(bytes, x), InternalError) << spec;
    EXPECT_THROW(codec->add_decoded(bytes, x), InternalError) << spec;
    codec->encode({}, {});
    codec->decode({}, {});
  }
}

TEST(Codec, ContributionsAreAddedInTheOrderOfTheRanks) {
  constexpr size_t kCount = 2000;
  constexpr size_t kRanks = 5;
  for (const char* spec : kAll) {
    const auto codec = make_codec(spec);
    Bytes all;
    Floats expected(kCount, 0.0f);
    for (size_t r = 0; r < kRanks; ++r) {
      Floats x = random_values(kCount, 100 + r, 0.01f);
      for (float& value : x)
        value *=
            std::ldexp(1.0f, static_cast<int>(3 * r));  // the order of the sum decides its bits
      const Bytes bytes = encoded(*codec, x);
      all.insert(all.end(), bytes.begin(), bytes.end());
      const Floats y = decoded(*codec, bytes, kCount);
      for (size_t i = 0; i < kCount; ++i) expected[i] += y[i];
    }
    Floats sum(kCount, 42.0f);
    sum_contributions(*codec, all, sum);
    EXPECT_EQ(sum, expected) << spec;
    all.pop_back();
    EXPECT_THROW(sum_contributions(*codec, all, sum), InternalError) << spec;
  }
}

}  // namespace
}  // namespace tutti::comm
