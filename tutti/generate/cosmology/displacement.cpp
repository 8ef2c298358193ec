#include "tutti/generate/cosmology/displacement.h"

#include <algorithm>
#include <cmath>
#include <complex>
#include <cstring>
#include <numbers>

namespace tutti::generate {
namespace {

using Mode = std::complex<float>;

// Returns the radians per cell of wave number 1, which has one period per box.
float fundamental_of(const FourierGrid& grid) {
  return static_cast<float>(2 * std::numbers::pi / grid.side());
}

// Calls f(line, x, y) for each line of modes along z, with the indices of its x and y.
void for_lines(const FourierGrid& grid, const auto& f) {
  int64_t line = 0;
  for (int x = 0; x < grid.side(); ++x)
    for (int y = 0; y < grid.side(); ++y, line += grid.row() / 2) f(line, x, y);
}

// Calls f(i) for each cell's index in a field's values, without the padding of rows.
void for_cells(const FourierGrid& grid, const auto& f) {
  for (int64_t line = 0; line < int64_t{grid.side()} * grid.side(); ++line)
    for (int64_t i = line * grid.row(); i < line * grid.row() + grid.side(); ++i) f(i);
}

int square_of(const FourierGrid& grid, int x, int y) {
  return grid.wave(x) * grid.wave(x) + grid.wave(y) * grid.wave(y);
}

// Computes the values of phi1_ij = k_i k_j / k^2 delta; i and j are 0, 1 or 2.
void second_derivative(const FourierGrid& grid, const GridField& contrast, int i, int j,
                       GridField& derivative) {
  const Mode* from = contrast.modes();
  Mode* to = derivative.modes();
  const auto wave = [&](int index) {
    return static_cast<float>(i == j ? grid.wave(index) : grid.odd_wave(index));
  };
  for_lines(grid, [&](int64_t line, int x, int y) {
    const int n2 = square_of(grid, x, y);
    const float wx = wave(x), wy = wave(y);
    for (int z = 0; z < grid.row() / 2; ++z) {
      const float w[3] = {wx, wy, wave(z)};
      to[line + z] = from[line + z] * (w[i] * w[j] / static_cast<float>(std::max(1, n2 + z * z)));
    }
  });
  grid.to_values(derivative);
}

}  // namespace

Displacement::Displacement(const FourierGrid& grid, float collapse_radius, GridField contrast)
    : grid_(grid), contrast_(std::move(contrast)), source_(grid.side()), shrinkage_(grid.side()) {
  const int half = grid.side() / 2;
  const float reach = fundamental_of(grid) * collapse_radius;
  for (int n2 = 0; n2 <= 3 * half * half; ++n2)
    long_range_.push_back(std::exp(-0.5f * reach * reach * static_cast<float>(n2)));
  find_source();
}

void Displacement::find_source() {
  GridField a(grid_.side()), b(grid_.side());
  float* source = source_.values();
  const float scale = 1.0f / static_cast<float>(grid_.cells());
  // Computes xx yy + (xx + yy) zz, with shrinkage_ as memory of the third.
  GridField& c = shrinkage_;
  second_derivative(grid_, contrast_, 0, 0, a);
  second_derivative(grid_, contrast_, 1, 1, b);
  second_derivative(grid_, contrast_, 2, 2, c);
  for_cells(grid_, [&](int64_t i) {
    const float xx = a.values()[i], yy = b.values()[i];
    source[i] = xx * yy + (xx + yy) * c.values()[i];
  });
  for (const auto& [i, j] : {std::array{0, 1}, std::array{0, 2}, std::array{1, 2}}) {
    second_derivative(grid_, contrast_, i, j, a);
    for_cells(grid_, [&](int64_t at) { source[at] -= a.values()[at] * a.values()[at]; });
  }
  for_cells(grid_, [&](int64_t i) { source[i] *= scale; });
  grid_.to_modes(source_);
}

void Displacement::find_shrinkage(float growth) {
  std::memcpy(shrinkage_.values(), contrast_.values(),
              sizeof(Mode) * static_cast<size_t>(grid_.modes()));
  grid_.to_values(shrinkage_);
  float* d = shrinkage_.values();
  const float scale = 1.0f / static_cast<float>(grid_.cells());
  for_cells(grid_, [&](int64_t i) {
    const float rest = std::max(0.0f, 1 - 2.0f / 3 * growth * d[i]);
    d[i] = 3 * (std::sqrt(rest) - 1) * scale;
  });
  grid_.to_modes(shrinkage_);
}

void Displacement::at(const Growth& growth, std::array<GridField, 3>& psi) {
  find_shrinkage(growth.first);
  const Mode *first = contrast_.modes(), *second = source_.modes(), *small = shrinkage_.modes();
  const float fundamental = fundamental_of(grid_);
  for_lines(grid_, [&](int64_t line, int x, int y) {
    const int n2 = square_of(grid_, x, y);
    const auto wx = static_cast<float>(grid_.odd_wave(x)),
               wy = static_cast<float>(grid_.odd_wave(y));
    for (int z = 0; z < grid_.row() / 2; ++z) {
      const int64_t i = line + z;
      const int square = n2 + z * z;
      const float k = long_range_[static_cast<size_t>(square)];
      // psi = i k chi, chi = (K (D1 delta - D2 source) - (1 - K) d) / k^2
      const Mode chi =
          (k * (growth.first * first[i] - growth.second * second[i]) - (1 - k) * small[i]) /
          (fundamental * static_cast<float>(std::max(1, square)));
      const Mode turned(-chi.imag(), chi.real());
      psi[0].modes()[i] = turned * wx;
      psi[1].modes()[i] = turned * wy;
      psi[2].modes()[i] = turned * static_cast<float>(grid_.odd_wave(z));
    }
  });
  for (GridField& component : psi) grid_.to_values(component);
}

}  // namespace tutti::generate
