#include "tutti/generate/cosmology/assignment.h"

#include <cmath>
#include <limits>
#include <vector>

#include "tutti/base/error.h"

namespace tutti::generate {
namespace {

// Along one axis, a cell's particles end in at most two neighbouring cells of the periodic box.
struct Landing {
  int64_t cell[2];
  int32_t particles[2];
};

int periodic(int cell, int side) {
  if (static_cast<unsigned>(cell) < static_cast<unsigned>(side)) return cell;
  const int rest = cell % side;
  return rest < 0 ? rest + side : rest;
}

// Particle j of a cell starts (j + 1/2) / particles cells above the cell's lower border.
Landing land(int from, float moved, int particles, int side) {
  const int steps = static_cast<int>(std::floor(moved * static_cast<float>(particles) + 0.5f));
  const int rest = (steps % particles + particles) % particles;
  const int lower = from + (steps - rest) / particles;
  return {{periodic(lower, side), periodic(lower + 1, side)}, {particles - rest, rest}};
}

}  // namespace

void count_displaced(const FourierGrid& grid, const std::array<GridField, 3>& psi, int particles,
                     const CountChannel& to) {
  const int side = grid.side();
  std::vector<int32_t> counts(static_cast<size_t>(grid.cells()));
  for (int x = 0; x < side; ++x)
    for (int y = 0; y < side; ++y)
      for (int z = 0; z < side; ++z) {
        const int64_t i = (int64_t{x} * side + y) * grid.row() + z;
        const Landing at_x = land(x, psi[0].values()[i], particles, side),
                      at_y = land(y, psi[1].values()[i], particles, side),
                      at_z = land(z, psi[2].values()[i], particles, side);
        for (int a = 0; a < 2; ++a)
          for (int b = 0; b < 2; ++b) {
            int32_t* row = counts.data() + (at_x.cell[a] * side + at_y.cell[b]) * side;
            const int32_t columns = at_x.particles[a] * at_y.particles[b];
            for (int c = 0; c < 2; ++c) row[at_z.cell[c]] += columns * at_z.particles[c];
          }
      }
  for (size_t i = 0; i < counts.size(); ++i) {
    if (counts[i] > std::numeric_limits<int16_t>::max())
      throw ConfigError(
          fmt::format("a cell holds {} particles, and counts are 16-bit: fewer "
                      "particles a cell, or larger cells",
                      counts[i]));
    to.counts[static_cast<int64_t>(i) * to.channels + to.channel] = static_cast<int16_t>(counts[i]);
  }
}

}  // namespace tutti::generate
