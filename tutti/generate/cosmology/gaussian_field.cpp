#include "tutti/generate/cosmology/gaussian_field.h"

#include <cmath>
#include <numbers>
#include <vector>

namespace tutti::generate {
namespace {

// Returns the factor for a mode of white noise, by the square of its wave number in units of 2 pi /
// box.
std::vector<float> amplitudes(const FourierGrid& grid, double cell, const LinearPower& power) {
  const int half = grid.side() / 2;
  const double fundamental = 2 * std::numbers::pi / (grid.side() * cell);
  std::vector<float> table(static_cast<size_t>(3 * half * half) + 1, 0.0f);
  for (size_t n2 = 1; n2 < table.size(); ++n2) {
    const double k = fundamental * std::sqrt(static_cast<double>(n2));
    table[n2] = static_cast<float>(std::sqrt(power(k) / (cell * cell * cell)) /
                                   static_cast<double>(grid.cells()));
  }
  return table;
}

}  // namespace

GridField gaussian_field(const FourierGrid& grid, double cell, const LinearPower& power, Rng& rng) {
  const int side = grid.side(), half = side / 2;
  GridField field(side);
  for (int64_t line = 0; line < int64_t{side} * side; ++line)
    for (int z = 0; z < side; ++z) field.values()[line * grid.row() + z] = rng.normal();
  grid.to_modes(field);
  const std::vector<float> amplitude = amplitudes(grid, cell, power);
  for (int x = 0; x < side; ++x)
    for (int y = 0; y < side; ++y) {
      const int n2 = grid.wave(x) * grid.wave(x) + grid.wave(y) * grid.wave(y);
      std::complex<float>* line = field.modes() + (int64_t{x} * side + y) * (half + 1);
      for (int z = 0; z <= half; ++z) line[z] *= amplitude[static_cast<size_t>(n2 + z * z)];
    }
  return field;
}

}  // namespace tutti::generate
