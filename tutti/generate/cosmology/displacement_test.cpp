#include "tutti/generate/cosmology/displacement.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numbers>
#include <vector>

#include "tutti/base/error.h"
#include "tutti/generate/cosmology/assignment.h"

namespace tutti::generate {
namespace {

constexpr int kBox = 16;
constexpr double kWave = 2 * std::numbers::pi / kBox;

int64_t place(const FourierGrid& grid, int x, int y, int z) {
  return (int64_t{x} * grid.side() + y) * grid.row() + z;
}

// Two plane waves of wave number 1 along x and y.
double two_waves(double a, double b, int x, int y) {
  return a * std::cos(kWave * x) + b * std::cos(kWave * y);
}

GridField modes_of_two_waves(const FourierGrid& grid, double a, double b) {
  GridField field(grid.side());
  for (int x = 0; x < kBox; ++x)
    for (int y = 0; y < kBox; ++y)
      for (int z = 0; z < kBox; ++z)
        field.values()[place(grid, x, y, z)] =
            static_cast<float>(two_waves(a, b, x, y) / static_cast<double>(grid.cells()));
  grid.to_modes(field);
  return field;
}

std::array<GridField, 3> fields() { return {GridField(kBox), GridField(kBox), GridField(kBox)}; }

TEST(Displacement, OfTwoWavesIsTheSecondOrderSolution) {
  const FourierGrid grid(kBox);
  const double a = 0.3, b = 0.2;
  Displacement displacement(grid, 0, modes_of_two_waves(grid, a, b));
  auto psi = fields();
  const double first = 0.7, second = -0.2;
  displacement.at({static_cast<float>(first), static_cast<float>(second)}, psi);
  for (int x = 0; x < kBox; ++x)
    for (int y = 0; y < kBox; ++y) {
      const int64_t at = place(grid, x, y, 5);
      const double sx = std::sin(kWave * x), cx = std::cos(kWave * x), sy = std::sin(kWave * y),
                   cy = std::cos(kWave * y);
      // phi1 = -(a cos x + b cos y) / k^2, phi2 = -a b cos x cos y / (2 k^2)
      EXPECT_NEAR(psi[0].values()[at], (-first * a * sx + second * a * b / 2 * sx * cy) / kWave,
                  1e-5);
      EXPECT_NEAR(psi[1].values()[at], (-first * b * sy + second * a * b / 2 * cx * sy) / kWave,
                  1e-5);
      EXPECT_NEAR(psi[2].values()[at], 0, 1e-5);
    }
}

TEST(Displacement, ByCollapseIsThatOfFirstOrderWhereTheContrastIsSmall) {
  const FourierGrid grid(kBox);
  Displacement displacement(grid, 100, modes_of_two_waves(grid, 1e-3, 0));
  auto psi = fields();
  displacement.at({}, psi);
  for (int x = 0; x < kBox; ++x)
    EXPECT_NEAR(psi[0].values()[place(grid, x, 3, 3)], -1e-3 * std::sin(kWave * x) / kWave, 2e-6);
}

TEST(Displacement, ByCollapseNeverShrinksAVolumeBelowAPoint) {
  const FourierGrid grid(kBox);
  Displacement displacement(grid, 100, modes_of_two_waves(grid, 50, 0));
  auto psi = fields();
  displacement.at({}, psi);
  for (int x = 0; x < kBox; ++x) {
    // The divergence is -3 where all collapses, minus the mean that voids contribute everywhere.
    const double next = psi[0].values()[place(grid, (x + 1) % kBox, 0, 0)],
                 before = psi[0].values()[place(grid, (x + kBox - 1) % kBox, 0, 0)];
    EXPECT_GT((next - before) / 2, -10) << "second order would shrink by 50";
  }
}

TEST(CountDisplaced, CountsInTheCellThatHoldsTheParticle) {
  const FourierGrid grid(kBox);
  auto psi = fields();
  for (auto& component : psi) std::fill_n(component.values(), kBox * kBox * grid.row(), 0.0f);
  psi[0].values()[place(grid, 0, 4, 4)] = -0.6f;   // one cell down: into the last
  psi[1].values()[place(grid, 7, 15, 4)] = 33.4f;  // twice around and one on
  psi[2].values()[place(grid, 9, 9, 9)] = 0.4f;    // stays
  std::vector<int16_t> counts(kBox * kBox * kBox * 2, -1);
  count_displaced(grid, psi, 1, {counts.data(), 1, 2});
  const auto count = [&](int x, int y, int z) {
    return counts[static_cast<size_t>(((x * kBox + y) * kBox + z) * 2 + 1)];
  };
  EXPECT_EQ(count(0, 4, 4), 0);
  EXPECT_EQ(count(15, 4, 4), 2);
  EXPECT_EQ(count(7, 15, 4), 0);
  EXPECT_EQ(count(7, 0, 4), 2);
  EXPECT_EQ(count(9, 9, 9), 1);
  EXPECT_EQ(counts[0], -1) << "the other channel is left alone";
}

TEST(CountDisplaced, SharesACellsParticlesAmongTheCellsThatTheyReach) {
  const FourierGrid grid(kBox);
  auto psi = fields();
  for (auto& component : psi) std::fill_n(component.values(), kBox * kBox * grid.row(), 0.0f);
  // With 4 particles along an axis, 0.3 cells move 1 of them over the upper border; -1.55 cells
  // move all over the lower one, and 2 of them over the next.
  psi[0].values()[place(grid, 3, 3, 3)] = 0.3f;
  psi[1].values()[place(grid, 3, 3, 3)] = -1.55f;
  std::vector<int16_t> counts(kBox * kBox * kBox);
  count_displaced(grid, psi, 4, {counts.data(), 0, 1});
  const auto count = [&](int x, int y, int z) {
    return counts[static_cast<size_t>((x * kBox + y) * kBox + z)];
  };
  EXPECT_EQ(count(3, 3, 3), 0);
  EXPECT_EQ(count(3, 2, 3), 64 + 3 * 2 * 4);
  EXPECT_EQ(count(3, 1, 3), 64 + 3 * 2 * 4);
  EXPECT_EQ(count(4, 2, 3), 64 + 1 * 2 * 4);
  EXPECT_EQ(count(4, 1, 3), 64 + 1 * 2 * 4);
}

TEST(CountDisplaced, RefusesMoreParticlesThanACountHolds) {
  const FourierGrid grid(kBox);
  auto psi = fields();
  for (auto& component : psi) std::fill_n(component.values(), kBox * kBox * grid.row(), 0.0f);
  for (int x = 0; x < kBox; ++x)  // 128 cells' particles, 512 each, go to (0, 0, 0)
    for (int y = 0; y < 8; ++y) {
      psi[0].values()[place(grid, x, y, 0)] = static_cast<float>(-x);
      psi[1].values()[place(grid, x, y, 0)] = static_cast<float>(-y);
    }
  std::vector<int16_t> counts(kBox * kBox * kBox);
  EXPECT_THROW(count_displaced(grid, psi, 8, {counts.data(), 0, 1}), ConfigError);
}

TEST(FourierGrid, GoesThereAndBackForAnySide) {
  for (const int side : {2, 5, 6, 16}) {
    const FourierGrid grid(side);
    GridField field(side);
    for (int64_t line = 0; line < side * side; ++line)
      for (int z = 0; z < side; ++z)
        field.values()[line * grid.row() + z] = static_cast<float>((line * 7 + z * 3) % 11);
    grid.to_modes(field);
    grid.to_values(field);
    for (int64_t line = 0; line < side * side; ++line)
      for (int z = 0; z < side; ++z)
        EXPECT_NEAR(field.values()[line * grid.row() + z] / static_cast<float>(grid.cells()),
                    (line * 7 + z * 3) % 11, 1e-4);
  }
  EXPECT_THROW(FourierGrid(1), ConfigError);
}

TEST(FourierGrid, MayBeMoved) {
  FourierGrid first(4);
  FourierGrid second(std::move(first));
  GridField a(4), b(std::move(a));
  std::fill_n(b.values(), 4 * 4 * second.row(), 1.0f);
  second.to_modes(b);
  EXPECT_EQ(b.modes()[0], std::complex<float>(64));
}

}  // namespace
}  // namespace tutti::generate
