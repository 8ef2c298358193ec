#include "tutti/generate/cosmology/cosmology.h"

#include <gtest/gtest.h>

#include <cmath>
#include <numeric>
#include <thread>
#include <vector>

#include "tutti/base/error.h"

namespace tutti::generate {
namespace {

using Counts = std::vector<int16_t>;

Counts volume(const VolumeSpec& spec, int64_t index) {
  Counts counts(static_cast<size_t>(spec.side) * spec.side * spec.side * 4, -1);
  generate_volume(spec, index, counts.data());
  return counts;
}

Counts volume_of(const Cosmology& cosmology, int64_t index) {
  const VolumeSpec spec{.side = 64};
  Counts counts(64 * 64 * 64 * 4);
  generate_volume(spec, index, cosmology, counts.data());
  return counts;
}

struct Moments {
  double variance, skewness;
};

// Returns moments of the contrast in blocks of `width`^3 cells, with so many particles per cell
// along an axis at first.
Moments moments(const Counts& counts, int side, int width, size_t channel, int particles = 1) {
  const int parts = side / width;
  std::vector<double> block(static_cast<size_t>(parts) * parts * parts);
  for (int x = 0; x < side; ++x)
    for (int y = 0; y < side; ++y)
      for (int z = 0; z < side; ++z)
        block[static_cast<size_t>((x / width * parts + y / width) * parts + z / width)] +=
            counts[static_cast<size_t>((x * side + y) * side + z) * 4 + channel];
  const double cells = static_cast<double>(block.size()), mean = std::pow(width * particles, 3);
  EXPECT_EQ(std::accumulate(block.begin(), block.end(), 0.0), mean * cells);
  double second = 0, third = 0;
  for (const double n : block) {
    const double contrast = n / mean - 1;
    second += contrast * contrast / cells;
    third += contrast * contrast * contrast / cells;
  }
  return {second, third / std::pow(second, 1.5)};
}

TEST(Cosmology, IsDrawnUniformlyFromItsRanges) {
  constexpr int kDraws = 4000;
  std::array<double, 4> sum{}, squares{};
  for (int i = 0; i < kDraws; ++i) {
    const auto unit = unit_parameters(cosmology_of({}, i));
    for (size_t p = 0; p < 4; ++p) {
      ASSERT_LE(std::abs(unit[p]), 1);
      sum[p] += unit[p] / kDraws;
      squares[p] += unit[p] * unit[p] / kDraws;
    }
  }
  for (size_t p = 0; p < 4; ++p) {
    EXPECT_NEAR(sum[p], 0, 0.04);
    EXPECT_NEAR(squares[p], 1.0 / 3, 0.02);
  }
  const auto planck = unit_parameters({});
  for (const float p : planck) EXPECT_NEAR(p, 0, 1e-5) << "the ranges lie around Planck's values";
}

TEST(Cosmology, MayBeDrawnFromWiderRanges) {
  const VolumeSpec wide{.spread = 0.4};
  for (int64_t i = 0; i < 100; ++i) {
    const auto unit = unit_parameters(cosmology_of(wide, i), wide.spread),
               published = unit_parameters(cosmology_of({}, i));
    for (size_t p = 0; p < 4; ++p)
      EXPECT_NEAR(unit[p], published[p], 1e-5) << "the same place in another range";
  }
  const auto [low, high] = parameter_ranges(0.4)[3];
  EXPECT_NEAR(low, 0.6 * 0.674, 1e-9);
  EXPECT_NEAR(high, 1.4 * 0.674, 1e-9);
  EXPECT_NEAR(parameter_ranges()[1].high, 1.3 * 0.811, 1e-9);
  EXPECT_THROW(parameter_ranges(0), ConfigError);
  EXPECT_THROW(parameter_ranges(0.45), ConfigError);
}

// With the least matter, nearly all of it baryons, the linear spectrum and the field must still be
// valid.
TEST(GenerateVolume, IsSoundAtTheEndsOfTheWidestRanges) {
  const auto ranges = parameter_ranges(kGreatestSpread);
  for (const bool low : {true, false}) {
    const auto end = [&](size_t p) { return low ? ranges[p].low : ranges[p].high; };
    const Cosmology cosmology{end(0), end(1), end(2), end(3)};
    ASSERT_GT(cosmology.omega_m * cosmology.h * cosmology.h, 0.0224) << "more than its baryons";
    const Counts counts = volume_of(cosmology, 2);
    EXPECT_EQ(std::accumulate(counts.begin(), counts.end(), int64_t{0}), 4 * 64 * 64 * 64);
    const double now = moments(counts, 64, 8, 0).variance,
                 then = moments(counts, 64, 8, 3).variance;
    EXPECT_GT(now, 2 * then) << low;
  }
}

TEST(GenerateVolume, LosesNoParticle) {
  for (const int side : {16, 15, 20}) {
    const Counts counts = volume({.side = side}, 3);
    std::array<int64_t, 4> sum{};
    for (size_t i = 0; i < counts.size(); ++i) {
      ASSERT_GE(counts[i], 0);
      sum[i % 4] += counts[i];
    }
    for (const int64_t particles : sum) EXPECT_EQ(particles, int64_t{side} * side * side);
  }
}

TEST(GenerateVolume, CountsEveryParticleOfACell) {
  const Counts counts = volume({.side = 16, .cell = 12, .particles = 4}, 3);
  std::array<int64_t, 4> sum{};
  for (size_t i = 0; i < counts.size(); ++i) sum[i % 4] += counts[i];
  for (const int64_t particles : sum) EXPECT_EQ(particles, int64_t{64} * 16 * 16 * 16);
}

// In large cells, a single particle per cell hardly ever leaves it at first. With many particles
// the variance is the field's.
TEST(GenerateVolume, ShowsGrowthInLargeCellsByManyParticles) {
  const Counts many = volume({.side = 32, .cell = 12, .particles = 8}, 1);
  for (size_t channel = 0; channel < 3; ++channel) {
    const double now = moments(many, 32, 1, channel, 8).variance,
                 before = moments(many, 32, 1, channel + 1, 8).variance;
    EXPECT_GT(now, 1.3 * before) << "z = " << kRedshifts[channel];
    EXPECT_LT(now, 8 * before) << "z = " << kRedshifts[channel];
  }
}

TEST(GenerateVolume, IsAFunctionOfSeedAndIndex) {
  const VolumeSpec spec{.side = 32, .seed = 5};
  const Counts first = volume(spec, 7);
  EXPECT_EQ(first, volume(spec, 7));
  EXPECT_NE(first, volume(spec, 8));
  EXPECT_NE(first, volume({.side = 32, .seed = 6}, 7));
  EXPECT_NE(first, volume(spec, kFirstTestVolume + 7));
}

TEST(GenerateVolume, DoesNotDependOnOtherThreads) {
  const VolumeSpec spec{.side = 24};
  std::vector<Counts> together(8);
  {
    std::vector<std::jthread> threads;
    for (int64_t i = 0; i < 8; ++i)
      threads.emplace_back([&, i] { together[static_cast<size_t>(i)] = volume(spec, i); });
  }
  for (int64_t i = 0; i < 8; ++i) EXPECT_EQ(together[static_cast<size_t>(i)], volume(spec, i)) << i;
}

TEST(GenerateVolume, ClumpsTowardsToday) {
  const Counts counts = volume_of({}, 1);
  for (const int width : {1, 4})
    for (size_t channel = 0; channel < 4; ++channel) {
      const Moments now = moments(counts, 64, width, channel);
      EXPECT_GT(now.skewness, 1) << "clusters are denser than voids are empty";
      if (channel == 3) break;
      const Moments before = moments(counts, 64, width, channel + 1);
      EXPECT_GT(now.variance, 1.05 * before.variance)
          << "cells of " << width << ", z = " << kRedshifts[channel];
      EXPECT_GT(now.skewness, before.skewness)
          << "cells of " << width << ", z = " << kRedshifts[channel];
    }
}

// Uses the same random numbers in other universes; sigma_8 is today's value in all of them.
TEST(GenerateVolume, ShowsItsParameters) {
  const Counts planck = volume_of({}, 1), stronger = volume_of({.sigma_8 = 0.95}, 1),
               denser = volume_of({.omega_m = 0.39}, 1), bluer = volume_of({.n_s = 1.2}, 1),
               faster = volume_of({.h = 0.8}, 1);
  const auto variance = [](const Counts& counts, int width, size_t channel) {
    return moments(counts, 64, width, channel).variance;
  };
  for (size_t channel = 0; channel < 4; ++channel)
    EXPECT_GT(variance(stronger, 2, channel), 1.1 * variance(planck, 2, channel)) << channel;
  // More matter grows for longer, so it was smoother before; this shows where growth is still
  // linear.
  const auto growth = [&](const Counts& counts) {
    return variance(counts, 16, 0) / variance(counts, 16, 3);
  };
  EXPECT_GT(growth(denser), 1.03 * growth(planck));
  // n_s and h add short waves, visible before they collapse.
  EXPECT_GT(variance(bluer, 1, 3), 1.1 * variance(planck, 1, 3));
  EXPECT_GT(variance(faster, 1, 3), 1.05 * variance(planck, 1, 3));
}

}  // namespace
}  // namespace tutti::generate
