#include "tutti/generate/vibrations.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numbers>
#include <set>

#include "tutti/base/error.h"

namespace tutti::generate {
namespace {

TEST(Vibrations, EvenChainsHaveTheKnownFrequencies) {
  for (const size_t n : {2, 6, 16}) {
    const ChainModes modes = chain_modes(std::vector<double>(n, 2.0), std::vector<double>(n, 3.0));
    for (size_t k = 0; k < n; ++k)
      EXPECT_NEAR(modes.frequencies[k],
                  2 * std::sqrt(1.5) *
                      std::sin((2 * static_cast<double>(k) + 1) * std::numbers::pi /
                               (2 * (2 * static_cast<double>(n) + 1))),
                  1e-12)
          << n << " masses, mode " << k;
  }
}

TEST(Vibrations, ShapesAreOrthogonalByMass) {
  const std::vector<double> masses{1, 0.5, 2, 1.5}, springs{1, 2, 0.3, 4};
  const ChainModes modes = chain_modes(masses, springs);
  for (size_t i = 0; i < 4; ++i)
    for (size_t j = 0; j < 4; ++j) {
      double product = 0;
      for (size_t m = 0; m < 4; ++m) product += masses[m] * modes.shapes[i][m] * modes.shapes[j][m];
      EXPECT_NEAR(product, i == j ? 1 : 0, 1e-12);
    }
}

/// Without damping m a = -k x must hold, for displacements and accelerations of the chain itself,
/// integrated by the leapfrog.
TEST(Vibrations, RingingObeysNewton) {
  const std::vector<double> masses{1, 0.9, 1.2}, springs{1, 0.6, 1.1};
  const ChainModes modes = chain_modes(masses, springs);
  std::vector<double> x(3), v(3), a(3);
  v[1] = 1 / masses[1];
  const double dt = 1e-4;
  const auto accelerate = [&] {
    for (size_t i = 0; i < 3; ++i) {
      const double below = springs[i] * (x[i] - (i > 0 ? x[i - 1] : 0)),
                   above = i + 1 < 3 ? springs[i + 1] * (x[i + 1] - x[i]) : 0;
      a[i] = (above - below) / masses[i];
    }
  };
  for (int step = 0; step <= 100'000; ++step) {
    accelerate();
    if (step % 20'000 == 0) {
      const std::vector<double> expected = ringing(modes, 0, 1, step * dt);
      for (size_t i = 0; i < 3; ++i) EXPECT_NEAR(expected[i], a[i], 1e-4) << step;
    }
    for (size_t i = 0; i < 3; ++i) v[i] += (step == 0 ? 0.5 : 1) * dt * a[i];
    for (size_t i = 0; i < 3; ++i) x[i] += dt * v[i];
  }
}

TEST(Vibrations, DampingTakesItsShareEachPeriod) {
  const ChainModes one = chain_modes({1}, {1});
  const double damping = 0.02, period = 2 * std::numbers::pi / std::sqrt(1 - damping * damping);
  EXPECT_NEAR(ringing(one, damping, 0, 1 + period)[0] / ringing(one, damping, 0, 1)[0],
              std::exp(-damping * period), 1e-12);
}

TEST(Vibrations, RecordsAreFunctionsOfSeedAndIndex) {
  const Vibration once = generate_vibration({}, 7);
  EXPECT_EQ(once.signals, generate_vibration({}, 7).signals);
  EXPECT_NE(once.signals, generate_vibration({}, 8).signals);
  EXPECT_NE(once.signals, generate_vibration({.seed = 2}, 7).signals);
  EXPECT_THROW(generate_vibration({.masses = 1}, 0), ConfigError);
  EXPECT_THROW(generate_vibration({.samples = 100}, 0), ConfigError);
}

TEST(Vibrations, RecordsHaveAllLengthsClassesAndNoise) {
  std::set<int> weak;
  std::set<int64_t> lengths;
  double squares = 0, count = 0;
  for (int64_t i = 0; i < 200; ++i) {
    const Vibration made = generate_vibration({.noise = 0.1}, i);
    weak.insert(made.weak);
    EXPECT_EQ(made.weak == 0, made.parameters[0] == -1);
    EXPECT_LE(std::abs(made.parameters[1]), 1);
    const auto pieces = std::ranges::count(made.padding, 0);
    lengths.insert(pieces);
    EXPECT_TRUE(std::is_sorted(made.padding.rbegin(), made.padding.rend()));  // no gaps
    const auto end = static_cast<size_t>(pieces * kVibrationPiece * 6);
    for (size_t s = 0; s < made.signals.size(); ++s) {
      const double noise = static_cast<double>(made.signals[s] - made.clean[s]);
      if (s >= end) {
        EXPECT_EQ(made.signals[s], 0);
        continue;
      }
      squares += noise * noise;
      ++count;
    }
    EXPECT_EQ(
        std::max(*std::ranges::max_element(made.clean), -*std::ranges::min_element(made.clean)), 1);
  }
  EXPECT_EQ(weak.size(), 7u);
  EXPECT_EQ(*lengths.begin(), 16);
  EXPECT_EQ(*lengths.rbegin(), 32);
  EXPECT_NEAR(std::sqrt(squares / count), 0.1, 0.001);
}

}  // namespace
}  // namespace tutti::generate
