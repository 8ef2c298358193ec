#include "tutti/data/format/array/unit_cell.h"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace tutti::data {
namespace {

/// Returns the cosine, exactly 0 at 90 degrees, so that a rectangular cell stays rectangular.
double cosine(double degrees) {
  return degrees == 90 ? 0 : std::cos(degrees * std::numbers::pi / 180);
}

}  // namespace

UnitCell unit_cell_of(const std::array<double, 3>& lengths, const std::array<double, 3>& degrees) {
  const double alpha = cosine(degrees[0]), beta = cosine(degrees[1]), gamma = cosine(degrees[2]);
  const double sine = std::sqrt(1 - gamma * gamma);
  const double bx = lengths[1] * gamma, by = lengths[1] * sine, cx = lengths[2] * beta,
               cy = lengths[2] * (alpha - beta * gamma) / sine,
               cz = std::sqrt(lengths[2] * lengths[2] - cx * cx - cy * cy);
  const auto real = [](double x) { return static_cast<float>(x); };
  return {real(lengths[0]), 0, 0, real(bx), real(by), 0, real(cx), real(cy), real(cz)};
}

bool is_no_cell(const UnitCell& cell) {
  return std::ranges::all_of(cell, [](float x) { return x == 0; });
}

bool is_sound_cell(const UnitCell& cell) {
  return std::ranges::all_of(cell, [](float x) { return std::isfinite(x); }) && cell[1] == 0 &&
         cell[2] == 0 && cell[5] == 0 && cell[0] > 0 && cell[4] > 0 && cell[8] > 0;
}

float greatest_reach(const UnitCell& cell) { return std::min({cell[0], cell[4], cell[8]}) / 2; }

}  // namespace tutti::data
