#include "tutti/data/generate/cosmology/assignment.h"

#include <cmath>

namespace tutti::data {
namespace {

// The cell, of `side` periodic ones, that holds what started in the middle of cell `from`.
int periodic_cell(int from, float moved, int side) {
  const int cell = from + static_cast<int>(std::floor(moved + 0.5f));
  if (static_cast<unsigned>(cell) < static_cast<unsigned>(side)) return cell;
  const int rest = cell % side;
  return rest < 0 ? rest + side : rest;
}

}  // namespace

void count_displaced(const FourierGrid& grid, const std::array<GridField, 3>& psi,
                     const CountChannel& to) {
  const int side = grid.side();
  for (int64_t i = 0; i < grid.cells(); ++i) to.counts[i * to.channels + to.channel] = 0;
  for (int x = 0; x < side; ++x)
    for (int y = 0; y < side; ++y)
      for (int z = 0; z < side; ++z) {
        const int64_t i = (int64_t{x} * side + y) * grid.row() + z;
        const int64_t at_x = periodic_cell(x, psi[0].values()[i], side),
                      at_y = periodic_cell(y, psi[1].values()[i], side),
                      at_z = periodic_cell(z, psi[2].values()[i], side);
        ++to.counts[((at_x * side + at_y) * side + at_z) * to.channels + to.channel];
      }
}

}  // namespace tutti::data
