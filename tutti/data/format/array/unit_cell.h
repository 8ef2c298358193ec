#pragma once
// UnitCell: the box that a simulation repeats in all directions, and the nearest image of a point
// in it. Three vectors, row by row, lower triangular as GROMACS has them:
//
//   a = (ax, 0, 0)   b = (bx, by, 0)   c = (cx, cy, cz)
//
// For images nearer than half of the smallest of ax, by and cz the nearest one is found by rounding
// along c, then b, then a: each step leaves one candidate.

#include <array>

namespace tutti::data {

/// ax 0 0, bx by 0, cx cy cz; all 0: no cell.
using UnitCell = std::array<float, 9>;

/// Of the lengths of the vectors and the angles between b and c, a and c, a and b in degrees.
UnitCell unit_cell_of(const std::array<double, 3>& lengths, const std::array<double, 3>& degrees);

bool is_no_cell(const UnitCell& cell);
/// Finite, lower triangular, and with a volume above 0.
bool is_sound_cell(const UnitCell& cell);
/// Up to which distance nearest_image() is exact.
float greatest_reach(const UnitCell& cell);

/// The vector from one point to another, made that to the other's nearest image.
inline void nearest_image(const UnitCell& cell, float* d) {
  for (int axis = 2; axis >= 0; --axis) {
    const float* vector = cell.data() + 3 * axis;
    const float times = __builtin_nearbyintf(d[axis] / vector[axis]);
    for (int i = 0; i <= axis; ++i) d[i] -= times * vector[i];
  }
}

}  // namespace tutti::data
