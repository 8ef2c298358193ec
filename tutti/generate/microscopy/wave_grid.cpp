#include "tutti/generate/microscopy/wave_grid.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <numbers>

#include "tutti/base/error.h"

namespace tutti::generate {
namespace {

constexpr double kTwoPi = 2 * std::numbers::pi;

std::array<int64_t, 2> square_shape(int side) {
  CHECK(side >= 2, "a grid of side {}", side);
  return {side, side};
}

/// Computes exp(-2 pi i k x) for each index k.
void fill_phases(const WaveGrid& grid, double x, std::vector<std::complex<float>>& phases) {
  for (int i = 0; i < grid.side(); ++i) {
    const double angle = -kTwoPi * grid.frequency(i) * x;
    phases[static_cast<size_t>(i)] = {static_cast<float>(std::cos(angle)),
                                      static_cast<float>(std::sin(angle))};
  }
}

}  // namespace

WaveField::WaveField(int64_t elements)
    : elements_(elements), floats_(FourierPlans::memory(2 * elements)) {
  clear();
}

void WaveField::clear() { std::fill_n(floats_.get(), 2 * elements_, 0.0f); }

WaveGrid::WaveGrid(int side, double box, double band)
    : side_(side), box_(box), limit_(band * side / (2 * box)), fourier_(square_shape(side)) {}

std::vector<PlacedAtom> atoms_in_box(const Crystal& crystal, int layer, const CrystalPose& pose,
                                     double box) {
  const double a = crystal.a * (1 + pose.strain), b = crystal.b * (1 + pose.strain);
  const double cosine = std::cos(pose.azimuth), sine = std::sin(pose.azimuth);
  // Covers the box in any direction, wherever the corner is.
  const double reach = std::numbers::sqrt2 * box / 2 + std::hypot(pose.x, pose.y);
  const int columns = static_cast<int>(reach / a) + 2, rows = static_cast<int>(reach / b) + 2;
  std::vector<PlacedAtom> placed;
  for (const CellAtom& atom : crystal.atoms) {
    if (layer >= 0 && static_cast<int>(atom.z * crystal.layers + 0.5) != layer) continue;
    for (int j = -rows; j <= rows; ++j)
      for (int i = -columns; i <= columns; ++i) {
        const double u = (i + atom.x) * a, v = (j + atom.y) * b;
        const double x = pose.x + cosine * u - sine * v, y = pose.y + sine * u + cosine * v;
        if (-box / 2 <= x && x < box / 2 && -box / 2 <= y && y < box / 2)
          placed.push_back({atom.element, x, y, 1});
      }
  }
  return placed;
}

void add_structure(const WaveGrid& grid, std::span<const PlacedAtom> atoms,
                   std::span<const float> factor, WaveField& modes) {
  CHECK(std::ssize(factor) == grid.elements(), "{} factors", factor.size());
  const int side = grid.side();
  WaveField sum(grid.elements());
  std::vector<std::complex<float>> along_x(static_cast<size_t>(side)), along_y = along_x;
  for (const PlacedAtom& atom : atoms) {
    fill_phases(grid, atom.x, along_x);
    fill_phases(grid, atom.y, along_y);
    for (int row = 0; row < side; ++row) {
      if (!grid.in_band(row, 0)) continue;
      const std::complex<float> of_row =
          static_cast<float>(atom.strength) * along_y[static_cast<size_t>(row)];
      std::complex<float>* const out = sum.data() + int64_t{row} * side;
      for (int i = 0; i < side; ++i) out[i] += product(of_row, along_x[static_cast<size_t>(i)]);
    }
  }
  for (int row = 0, at = 0; row < side; ++row)
    for (int column = 0; column < side; ++column, ++at)
      if (grid.in_band(row, column)) modes[at] += factor[static_cast<size_t>(at)] * sum[at];
}

}  // namespace tutti::generate
