#include "tutti/generate/cosmology/power_spectrum.h"

#include <gtest/gtest.h>

#include <cmath>
#include <complex>
#include <numbers>
#include <vector>

#include "tutti/generate/cosmology/gaussian_field.h"

namespace tutti::generate {
namespace {

TEST(LinearPower, HasTheAskedVarianceInSpheresOf8) {
  for (const double sigma_8 : {0.6, 0.811, 1.0})
    EXPECT_NEAR(std::sqrt(variance_in_spheres(LinearPower({.sigma_8 = sigma_8}), 8)), sigma_8,
                1e-9);
}

TEST(LinearPower, HasTheShapeOfPlancksUniverse) {
  const LinearPower power(Cosmology{});
  EXPECT_NEAR(power.transfer(1e-5), 1, 1e-3);
  double peak = 1e-3;
  for (double k = 1e-3; k < 1; k *= 1.01)
    if (power(k) > power(peak)) peak = k;
  EXPECT_NEAR(peak, 0.0165, 0.0025) << "matter and radiation were equal at 0.0102 / Mpc";
  EXPECT_NEAR(power(peak), 24000, 3000) << "(Mpc/h)^3";
  EXPECT_NEAR(std::log(power(2e-5) / power(1e-5)) / std::log(2), 0.965, 0.01)
      << "the largest scales keep the initial tilt";
  EXPECT_LT(std::log(power(20.0) / power(10.0)) / std::log(2), -2.4);
}

TEST(LinearGrowth, IsThatOfMatterAloneOrSlowerWithLambda) {
  EXPECT_NEAR(linear_growth(1, 3), 0.25, 1e-12);
  EXPECT_DOUBLE_EQ(linear_growth(0.3, 0), 1);
  EXPECT_NEAR(linear_growth(0.3, 1), 0.612, 0.002) << "growth stops when lambda takes over";
  EXPECT_NEAR(second_order_growth(1, 1), -3.0 / 28, 1e-12);
}

// The variance of a field in spheres of `radius`, and sums of |mode|^2 / expected in shells of k.
struct Measured {
  double variance = 0;
  std::vector<double> ratio, modes;
};

Measured measure(const FourierGrid& grid, double cell, const LinearPower& power,
                 const GridField& field) {
  const double box = grid.side() * cell;
  const int half = grid.side() / 2;
  Measured found{0, std::vector<double>(8), std::vector<double>(8)};
  for (int x = 0; x < grid.side(); ++x)
    for (int y = 0; y < grid.side(); ++y)
      for (int z = 0; z <= half; ++z) {
        const double n =
            std::sqrt(grid.wave(x) * grid.wave(x) + grid.wave(y) * grid.wave(y) + z * z);
        if (n == 0) continue;
        const double k = 2 * std::numbers::pi / box * n, r = 8 * k;
        const double twice = z == 0 || z == half ? 1 : 2;  // the modes of the other half-space
        const double square =
            std::norm(field.modes()[(int64_t{x} * grid.side() + y) * (half + 1) + z]);
        const double w = 3 * (std::sin(r) - r * std::cos(r)) / (r * r * r);
        found.variance += twice * square * w * w;
        const auto shell = static_cast<size_t>(std::min(7.0, 8 * n / half));
        found.ratio[shell] += twice * square * box * box * box / power(k);
        found.modes[shell] += twice;
      }
  return found;
}

TEST(GaussianField, HasTheSpectrumAndTheVarianceAskedFor) {
  const FourierGrid grid(96);
  const double cell = 5;  // 480 Mpc/h: the box holds 99 % of the variance
  const LinearPower power(Cosmology{});
  Rng rng(3, Purpose::test, 1);
  GridField field = gaussian_field(grid, cell, power, rng);
  EXPECT_EQ(field.modes()[0], std::complex<float>(0));
  const Measured found = measure(grid, cell, power, field);
  for (size_t shell = 0; shell < found.ratio.size(); ++shell)
    EXPECT_NEAR(found.ratio[shell] / found.modes[shell], 1, 5 * std::sqrt(2 / found.modes[shell]))
        << "shell " << shell << " of " << found.modes[shell] << " modes";
  EXPECT_NEAR(std::sqrt(found.variance), 0.811, 0.03);
  grid.to_values(field);
  double third = 0, second = 0;
  for (int64_t line = 0; line < 96 * 96; ++line)
    for (int z = 0; z < 96; ++z) {
      const double v = field.values()[line * grid.row() + z];
      second += v * v;
      third += v * v * v;
    }
  const auto cells = static_cast<double>(grid.cells());
  EXPECT_NEAR(third / cells / std::pow(second / cells, 1.5), 0, 0.05) << "no skewness";
}

}  // namespace
}  // namespace tutti::generate
