#include "tutti/comm/compress/codec/topk.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <functional>
#include <limits>
#include <vector>

#include "tutti/base/error.h"
#include "tutti/base/numeric/rng.h"
#include "tutti/comm/compress/codec/codec_samples.h"

namespace tutti::comm {
namespace {

struct Entries {
  Floats values;
  std::vector<uint32_t> indices;
};

Entries encode(const Floats& x, double ratio, uint64_t step = 0) {
  const auto codec = make_topk(ratio);
  Bytes out(codec->encoded_bytes(x.size()));
  codec->encode(x, out, step);
  const size_t k = out.size() / 8;
  Entries entries{Floats(k), std::vector<uint32_t>(k)};
  std::memcpy(entries.values.data(), out.data(), 4 * k);
  std::memcpy(entries.indices.data(), out.data() + 4 * k, 4 * k);
  return entries;
}

// Expects exactly k entries, ascending, with the vector's own bits, and none smaller than the k-th
// largest magnitude less the resolution.
void expect_topk(const Floats& x, double ratio, const char* what) {
  const Entries entries = encode(x, ratio);
  const size_t k = entries.indices.size();
  ASSERT_EQ(k, topk_count(ratio, x.size()));
  for (size_t j = 0; j < k; ++j) {
    ASSERT_LT(entries.indices[j], x.size());
    ASSERT_TRUE(j == 0 || entries.indices[j - 1] < entries.indices[j]) << what;
    ASSERT_EQ(std::bit_cast<uint32_t>(entries.values[j]),
              std::bit_cast<uint32_t>(x[entries.indices[j]]))
        << what;
  }
  Floats magnitudes(x.size());
  double sum = 0;
  for (size_t i = 0; i < x.size(); ++i) sum += magnitudes[i] = std::fabs(x[i]);
  std::nth_element(magnitudes.begin(), magnitudes.begin() + static_cast<std::ptrdiff_t>(k - 1),
                   magnitudes.end(), std::greater<>());
  const float exact = magnitudes[k - 1];
  const double mean = sum / static_cast<double>(x.size());
  const double width =
      exact > mean ? *std::max_element(magnitudes.begin(), magnitudes.end()) - mean : mean;
  const double floor = exact - width * 0x1p-30 - exact * 0x1p-23;
  for (size_t j = 0; j < k; ++j)
    ASSERT_GE(std::fabs(entries.values[j]), floor) << what << ", " << k << " of " << x.size();
}

using Generate = std::function<float(Rng&)>;
const std::pair<const char*, Generate> kInputs[] = {
    {"normal", [](Rng& rng) { return rng.normal(); }},
    {"heavy-tailed", [](Rng& rng) { return rng.normal() / std::max(1e-6f, rng.uniform()); }},
    {"constant", [](Rng&) { return -0.1f; }},
    {"zero", [](Rng&) { return 0.0f; }},
    {"sparse", [](Rng& rng) { return rng.uniform() < 0.003f ? rng.normal() : 0.0f; }},
    {"two magnitudes", [](Rng& rng) { return rng.uniform() < 0.3f ? 2.0f : 1.0f; }},
    {"subnormal", [](Rng& rng) { return rng.normal() * 1e-41f; }},
};

Floats generated(const Generate& generate, size_t n) {
  Rng rng(11, Purpose::test, n);
  Floats x(n);
  for (float& value : x) value = generate(rng);
  return x;
}

TEST(Topk, AgreesWithTheExactSelectionOnAllInputs) {
  for (const auto& [what, generate] : kInputs)
    for (const size_t n : {1, 2, 3, 127, 20000})
      for (const double ratio : {1e-4, 0.01, 0.1, 0.5, 0.9, 1.0})
        expect_topk(generated(generate, n), ratio, what);
}

TEST(Topk, AgreesWithTheExactSelectionOnAMillion) {
  const size_t n = 1000003;
  expect_topk(generated(kInputs[0].second, n), 0.01, "normal");
  expect_topk(generated(kInputs[1].second, n), 0.001, "heavy-tailed");
  expect_topk(generated(kInputs[4].second, n), 0.01, "sparse, and fewer nonzero than k");
}

TEST(Topk, TheCountIsRoundedAndAtLeastOne) {
  EXPECT_EQ(topk_count(0.01, 0), 0u);
  EXPECT_EQ(topk_count(0.01, 1), 1u);
  EXPECT_EQ(topk_count(0.01, 149), 1u);
  EXPECT_EQ(topk_count(0.01, 150), 2u);
  EXPECT_EQ(topk_count(1, 7), 7u);
}

TEST(Topk, ThresholdsCountWhatTheySay) {
  for (const auto& [what, generate] : kInputs)
    for (const size_t k : {1, 17, 4000, 9999}) {
      const Floats x = generated(generate, 10000);
      const TopkThresholds t = mstopk_thresholds(x, k);
      const auto reaching = [&](uint32_t magnitude) {
        return static_cast<size_t>(std::ranges::count_if(
            x, [=](float v) { return (std::bit_cast<uint32_t>(v) & 0x7FFFFFFFu) >= magnitude; }));
      };
      EXPECT_EQ(t.taken, reaching(t.above)) << what;
      EXPECT_EQ(t.reaching, reaching(t.from)) << what;
      EXPECT_LE(t.taken, k) << what;
      EXPECT_GE(t.reaching, k) << what;
    }
}

TEST(Topk, TheStepChoosesARunAmongEquals) {
  const Floats ones(1000, 1.0f);
  EXPECT_EQ(encode(ones, 0.003).indices, (std::vector<uint32_t>{0, 1, 2})) << "the first run";
  std::vector<uint32_t> begins;
  for (uint64_t step = 1; step <= 200; ++step) {
    const Entries entries = encode(ones, 0.003, step);
    EXPECT_EQ(entries.indices[2], entries.indices[0] + 2) << "contiguous";
    EXPECT_EQ(entries.indices, encode(ones, 0.003, step).indices) << "a function of the step";
    begins.push_back(entries.indices[0]);
  }
  EXPECT_LT(*std::ranges::min_element(begins), 100u);
  EXPECT_GT(*std::ranges::max_element(begins), 900u);
  std::ranges::sort(begins);
  EXPECT_GT(std::unique(begins.begin(), begins.end()) - begins.begin(), 150)
      << "spread over the vector";
}

TEST(Topk, NanAndInfinityAreTakenFirst) {
  for (const auto& [what, generate] : kInputs)
    for (const double ratio : {0.001, 0.002, 0.01, 0.5}) {
      Floats x = generated(generate, 1000);
      x[993] = -kNan;
      const Entries one = encode(x, ratio, 5);
      EXPECT_TRUE(std::ranges::find(one.indices, 993u) != one.indices.end())
          << what << " " << ratio;
      x[17] = kInf;
      const Entries two = encode(x, ratio, 5);
      EXPECT_EQ(std::ranges::count_if(two.values, [](float v) { return !std::isfinite(v); }),
                std::min<std::ptrdiff_t>(2, std::ssize(two.values)))
          << what << " " << ratio;
    }
  EXPECT_EQ(encode(Floats(100, kNan), 0.03).indices, (std::vector<uint32_t>{0, 1, 2}));
}

TEST(Topk, WhatIsFiniteIsStillChosenByMagnitudeBesideInfinity) {
  Floats x = generated(kInputs[0].second, 1000);
  x[3] = kInf;
  x[500] = 100;
  x[700] = -200;
  EXPECT_EQ(encode(x, 0.003).indices, (std::vector<uint32_t>{3, 500, 700}));
}

TEST(Topk, LargestFloatsDoNotOverflow) {
  Floats x(100, std::numeric_limits<float>::max());
  x[5] = 1;
  const Entries entries = encode(x, 0.99);
  EXPECT_EQ(std::ranges::count(entries.indices, 5u), 0);
}

TEST(Topk, AForeignIndexIsRefused) {
  const auto codec = make_topk(0.02);
  Floats x(100, 0.0f);
  x[8] = 3, x[50] = -2;
  Bytes out(codec->encoded_bytes(100));
  codec->encode(x, out);
  Floats y(100);
  codec->decode(out, y);
  EXPECT_EQ(y, x);
  const uint32_t outside = 100;
  std::memcpy(out.data() + 12, &outside, 4);
  EXPECT_THROW(codec->decode(out, y), CommError);
  EXPECT_THROW(codec->add_decoded(out, y), CommError);
}

}  // namespace
}  // namespace tutti::comm
