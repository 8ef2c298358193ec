#pragma once
// A UnitCell is the box that a simulation repeats in all directions; nearest_image() finds the
// nearest image of a point. The cell has three vectors, row by row, lower triangular as in GROMACS:
//
//   a = (ax, 0, 0)   b = (bx, by, 0)   c = (cx, cy, cz)
//
// For images nearer than half of the smallest of ax, by and cz, rounding along c, then b, then a
// finds the nearest one: each step leaves one candidate.

#include <array>

namespace tutti::data {

/// ax 0 0, bx by 0, cx cy cz; all 0: no cell.
using UnitCell = std::array<float, 9>;

/// Makes a cell from the lengths of the vectors and the angles b-c, a-c and a-b in degrees.
UnitCell unit_cell_of(const std::array<double, 3>& lengths, const std::array<double, 3>& degrees);

bool is_no_cell(const UnitCell& cell);
/// Says whether the cell is finite, lower triangular, and has a volume above 0.
bool is_sound_cell(const UnitCell& cell);
/// Returns the distance up to which nearest_image() is exact.
float greatest_reach(const UnitCell& cell);

/// Changes the vector between two points to that between the first point and the nearest image of
/// the second.
inline void nearest_image(const UnitCell& cell, float* d) {
  for (int axis = 2; axis >= 0; --axis) {
    const float* vector = cell.data() + 3 * axis;
    const float times = __builtin_nearbyintf(d[axis] / vector[axis]);
    for (int i = 0; i <= axis; ++i) d[i] -= times * vector[i];
  }
}

}  // namespace tutti::data
