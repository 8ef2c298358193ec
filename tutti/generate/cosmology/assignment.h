#pragma once
// Counts particles by cell.

#include <array>
#include <cstdint>

#include "tutti/generate/cosmology/fourier_grid.h"

namespace tutti::generate {

/// One of the channels in counts[side][side][side][channels].
struct CountChannel {
  int16_t* counts;
  int channel, channels;
};

/// Counts `particles`^3 particles that start in every cell of a periodic box, on a lattice around
/// the cell's middle. All particles of a cell move by its psi (in cells), and each is counted in
/// the cell where it ends ("nearest grid point"). The channel is filled from 0. ConfigError if a
/// cell holds more than an int16 can count.
void count_displaced(const FourierGrid& grid, const std::array<GridField, 3>& psi, int particles,
                     const CountChannel& to);

}  // namespace tutti::generate
