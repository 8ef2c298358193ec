#include "tutti/generate/microscopy/cbed.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <set>
#include <thread>

#include "tutti/base/error.h"
#include "tutti/data/element_type.h"

namespace tutti::generate {
namespace {

CbedSpec small() { return {.side = 32, .thinnest = 2, .thickest = 6}; }

double sum_of(const std::vector<float>& values) {
  return std::accumulate(values.begin(), values.end(), 0.0);
}

TEST(Cbed, IsAFunctionOfSeedAndIndex) {
  const CbedGenerator generator(small());
  const CbedSample first = generator.sample(7);
  EXPECT_EQ(first.pattern, CbedGenerator(small()).sample(7).pattern);
  EXPECT_NE(first.pattern, generator.sample(8).pattern);
  EXPECT_NE(first.pattern, generator.sample(kFirstTestCbed + 7).pattern);
  CbedSpec other = small();
  other.seed = 2;
  EXPECT_NE(first.pattern, CbedGenerator(other).sample(7).pattern);
}

TEST(Cbed, DoesNotDependOnOtherThreads) {
  const CbedGenerator generator(small());
  std::vector<CbedSample> together(4);
  {
    std::vector<std::jthread> threads;
    for (size_t i = 0; i < 4; ++i)
      threads.emplace_back([&, i] { together[i] = generator.sample(static_cast<int64_t>(i)); });
  }
  for (size_t i = 0; i < 4; ++i) {
    const CbedSample alone = generator.sample(static_cast<int64_t>(i));
    EXPECT_EQ(together[i].pattern, alone.pattern);
    EXPECT_EQ(together[i].potential, alone.potential);
  }
}

TEST(Cbed, HasClassesAndParametersOfAllKinds) {
  const CbedGenerator generator(small());
  std::set<CrystalClass> kinds;
  std::array<double, 4> low{}, high{};
  for (int64_t i = 0; i < 60; ++i) {
    const CbedSample made = generator.sample(i);
    kinds.insert(made.kind);
    for (size_t p = 0; p < 4; ++p) {
      const auto value = static_cast<double>(made.parameters[p]);
      EXPECT_LE(std::abs(value), p == 2 ? 1.3 : 1.0) << p;  // half a slice may lie beyond the end
      low[p] = std::min(low[p], value);
      high[p] = std::max(high[p], value);
    }
  }
  EXPECT_EQ(kinds.size(), 9u);
  EXPECT_FALSE(kinds.contains(CrystalClass::graphene));
  for (size_t p = 0; p < 4; ++p) EXPECT_GT(high[p] - low[p], 1.6) << p;
}

/// Every electron lands in a pixel unless it is scattered further; noise keeps the mean.
TEST(Cbed, NoiseIsThatOfCountedElectrons) {
  CbedSpec spec = small();
  spec.crystal = "Si";
  spec.dose = 0;
  const CbedSample clean = CbedGenerator(spec).sample(3);
  EXPECT_GT(sum_of(clean.pattern) / (32 * 32), 0.9);
  EXPECT_LE(sum_of(clean.pattern) / (32 * 32), 1.0001);
  spec.dose = 1e4;
  const CbedSample counted = CbedGenerator(spec).sample(3);
  EXPECT_EQ(counted.parameters, clean.parameters);
  EXPECT_NEAR(sum_of(counted.pattern), sum_of(clean.pattern), 4 * std::sqrt(1e4) / 1e4 * 1024);
  double squares = 0, pixels = 0;
  for (size_t i = 0; i < clean.pattern.size(); ++i) {
    const double mean = static_cast<double>(clean.pattern[i]) * 1e4 / 1024;
    if (mean < 5) continue;
    const double counts = static_cast<double>(counted.pattern[i]) * 1e4 / 1024;
    EXPECT_NEAR(counts, std::round(counts), 1e-2);
    squares += (counts - mean) * (counts - mean) / mean;
    ++pixels;
  }
  EXPECT_NEAR(squares / pixels, 1, 0.5);
}

/// The crystal's tilt moves intensity to one side, along the axis that its label names.
TEST(Cbed, TiltMovesIntensityAlongItsAxis) {
  CbedSpec spec{.side = 32,
                .thinnest = 8,
                .thickest = 8,
                .azimuth = 0,
                .strain = 0,
                .dose = 0,
                .crystal = "Si"};
  const CbedGenerator generator(spec);
  double with_x = 0, with_y = 0, squares_x = 0, squares_y = 0;
  for (int64_t i = 0; i < 40; ++i) {
    const CbedSample made = generator.sample(i);
    double right = 0, down = 0;
    for (int row = 0; row < 32; ++row)
      for (int column = 0; column < 32; ++column) {
        const auto share =
            static_cast<double>(made.pattern[static_cast<size_t>(row * 32 + column)]);
        right += share * (column - 16);
        down += share * (row - 16);
      }
    const auto x = static_cast<double>(made.parameters[0]),
               y = static_cast<double>(made.parameters[1]);
    with_x += x * right, with_y += y * down;
    squares_x += std::sqrt(x * x * right * right), squares_y += std::sqrt(y * y * down * down);
  }
  EXPECT_GT(std::abs(with_x) / squares_x, 0.8);
  EXPECT_GT(std::abs(with_y) / squares_y, 0.8);
}

TEST(Cbed, PotentialPeaksAtTheProbe) {
  const CbedSample made = CbedGenerator(small()).sample(1);
  EXPECT_GT(made.potential[16 * 32 + 16], 20);  // an atom column
}

TEST(Cbed, RefusesWhatDoesNotFit) {
  CbedSpec spec = small();
  spec.crystal = "unobtainium";
  EXPECT_THROW(CbedGenerator{spec}, ConfigError);
  spec.crystal = "graphene";
  EXPECT_THROW(CbedGenerator{spec}, ConfigError);
  spec = small();
  spec.side = 31;
  EXPECT_THROW(CbedGenerator{spec}, ConfigError);
  spec = small();
  spec.thickest = 1;
  EXPECT_THROW(CbedGenerator{spec}, ConfigError);
  spec = small();
  spec.convergence = 40;
  EXPECT_THROW(CbedGenerator{spec}, ConfigError);
}

TEST(ElementType, HalvesAreTheNearestOnes) {
  for (uint32_t bits = 0; bits < 0x7c00; ++bits) {
    const float exact = static_cast<float>(data::Half{static_cast<uint16_t>(bits)});
    const float next =
        bits == 0x7bff ? 65536 : static_cast<float>(data::Half{static_cast<uint16_t>(bits + 1)});
    EXPECT_EQ(data::to_half(exact).bits, bits);
    EXPECT_EQ(data::to_half(-exact).bits, bits | 0x8000);
    const float middle = exact + (next - exact) / 2;
    EXPECT_EQ(data::to_half(middle).bits, bits + (bits & 1)) << bits;
    EXPECT_EQ(data::to_half(std::nextafter(middle, 0.0f)).bits, bits) << bits;
    EXPECT_EQ(data::to_half(std::nextafter(middle, 1e9f)).bits, bits + 1) << bits;
  }
  EXPECT_EQ(data::to_half(1e30f).bits, 0x7c00);
  EXPECT_EQ(data::to_half(1e-30f).bits, 0);
  EXPECT_TRUE(std::isnan(static_cast<float>(data::to_half(NAN))));
}

}  // namespace
}  // namespace tutti::generate
