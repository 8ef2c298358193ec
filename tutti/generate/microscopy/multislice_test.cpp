#include "tutti/generate/microscopy/multislice.h"

#include <gtest/gtest.h>

#include <cmath>
#include <numbers>
#include <set>

#include "tutti/base/error.h"
#include "tutti/generate/microscopy/scattering.h"

namespace tutti::generate {
namespace {

const Crystal& crystal(std::string_view name) { return *crystals_named(name).front(); }

double intensity(const WaveField& field) {
  double sum = 0;
  for (int64_t i = 0; i < field.elements(); ++i) sum += static_cast<double>(std::norm(field[i]));
  return sum;
}

/// Compares textbook values: Doyle and Turner 1968 give 5.828 and 2.509 Angstrom for silicon and
/// carbon in the forward direction.
TEST(Scattering, HasTheFactorsOfTheTables) {
  EXPECT_NEAR(scattering_factor(14, 0), 5.828, 0.05);
  EXPECT_NEAR(scattering_factor(6, 0), 2.509, 0.02);
  // At large angles electrons see the bare nucleus: Z / (2 pi^2 a0 q^2).
  std::set<int> elements;
  for (const Crystal& any : crystals())
    for (const CellAtom& atom : any.atoms) elements.insert(atom.element);
  for (const int z : elements) {
    const double bare = z / (2 * std::numbers::pi * std::numbers::pi * 0.529177);
    const double ratio = scattering_factor(z, 12.0 * 12.0) * 144 / bare;
    EXPECT_GT(ratio, 0.85) << z;
    EXPECT_LT(ratio, 1.05) << z;
  }
}

TEST(Scattering, KnowsTheElectronOfTheTextbooks) {
  EXPECT_NEAR(electron_wavelength(100), 0.037014, 2e-6);
  EXPECT_NEAR(electron_wavelength(200), 0.025079, 2e-6);
  EXPECT_NEAR(electron_wavelength(300), 0.019687, 2e-6);
  EXPECT_NEAR(interaction_constant(100), 0.924e-3, 1e-6);
  EXPECT_NEAR(interaction_constant(200), 0.729e-3, 1e-6);
}

/// Phase shifts and vacuum lose no electrons as long as no wave is cut off.
TEST(Multislice, KeepsTheIntensity) {
  const WaveGrid whole(96, 25, 10), limited(96, 25);
  const Crystal& gold = crystal("Au");
  for (const WaveGrid* grid : {&whole, &limited}) {
    WaveField wave = probe_modes(*grid, {.convergence = 0.006});
    EXPECT_NEAR(intensity(wave), 1, 1e-5);
    const Multislice slices(*grid, gold, {}, 200, {.x = 0.004, .y = -0.002});
    slices.propagate(wave, 50);
    if (grid == &whole)
      EXPECT_NEAR(intensity(wave), 1, 1e-4);
    else
      EXPECT_LT(intensity(wave), 1);
  }
  EXPECT_GT(intensity([&] {
              WaveField wave = probe_modes(limited, {.convergence = 0.006});
              Multislice(limited, crystal("Si"), {}, 200, {}).propagate(wave, 73);
              return wave;
            }()),
            0.9);  // 10 nm of silicon scatter little beyond 32 mrad
}

/// A thin crystal with a centre of symmetry on the beam has I(k) = I(-k).
TEST(Multislice, FriedelPairsAreAlikeWithoutTilt) {
  const WaveGrid grid(96, 25.3);
  const auto asymmetry = [&](const Multislice::Tilt& tilt) {
    WaveField wave = probe_modes(grid, {.convergence = 0.006});
    Multislice(grid, crystal("SrTiO3"), {.azimuth = 0.1}, 200, tilt).propagate(wave, 10);
    double apart = 0, all = 0;
    for (int row = 1; row < 96; ++row)
      for (int column = 1; column < 96; ++column) {
        const double here = static_cast<double>(std::norm(wave[row * 96 + column]));
        const double there = static_cast<double>(std::norm(wave[(96 - row) * 96 + 96 - column]));
        apart += std::abs(here - there);
        all += here;
      }
    return apart / all;
  };
  EXPECT_LT(asymmetry({}), 1e-4);
  EXPECT_GT(asymmetry({.x = 0.01}), 1e-2);
}

/// A narrow cone makes spots at the reciprocal lattice, and nothing between.
TEST(Multislice, BraggSpotsAreWhereTheLatticeHasThem) {
  for (const auto& [name, h, k] :
       {std::tuple{"Al", 2, 0}, {"Al", 2, 2}, {"Fe", 1, 1}, {"Si", 2, 2}, {"Si", 4, 0}}) {
    const Crystal& of = crystal(name);
    const double strain = 0.02;
    const WaveGrid grid(192, 16 * of.a * (1 + strain));  // 16 cells: spots coincide with modes
    WaveField wave = probe_modes(grid, {.convergence = 0.0005});
    Multislice(grid, of, {.strain = strain}, 200, {}).propagate(wave, 8 * of.layers);
    const auto at = [&](double column, double row) {
      return static_cast<double>(
          std::norm(wave[static_cast<int64_t>(row) * 192 + static_cast<int64_t>(column)]));
    };
    const double spot = at(16 * h, 16 * k);
    EXPECT_GT(spot, 1e-4) << name << h << k;
    EXPECT_LT(at(16 * h + 6, 16 * k + 3), 1e-4 * spot) << name << h << k;
    EXPECT_LT(at(16, 0), 1e-4 * spot) << name << ": 100 is forbidden";
  }
}

/// The mean inner potential is the sum of the forward factors over the cell's volume.
TEST(Multislice, HasTheMeanInnerPotential) {
  const Crystal& silicon = crystal("Si");
  const WaveGrid grid(64, 4 * silicon.a);
  const std::vector<float> potential = Multislice(grid, silicon, {}, 200, {}).mean_potential();
  double mean = 0;
  for (const float v : potential)
    mean += static_cast<double>(v) / static_cast<double>(potential.size());
  EXPECT_NEAR(mean, 13.9, 0.2);  // neutral atoms; measured: 12.1 V
  EXPECT_NEAR(mean, 8 * kVoltsOfFactor * scattering_factor(14, 0) / std::pow(silicon.a, 3), 1e-3);
}

TEST(Multislice, RefusesAConeThatDoesNotFit) {
  EXPECT_THROW(probe_modes(WaveGrid(32, 25), {.convergence = 0.05}), ConfigError);
}

}  // namespace
}  // namespace tutti::generate
