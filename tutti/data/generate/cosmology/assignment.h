#pragma once
// Particles counted by cell.

#include <array>
#include <cstdint>

#include "tutti/data/generate/cosmology/fourier_grid.h"

namespace tutti::data {

/// One of the channels of counts[side][side][side][channels].
struct CountChannel {
  int16_t* counts;
  int channel, channels;
};

/// One particle starts in the middle of every cell of a periodic box, moves by psi (in cells), and
/// is counted in the cell that holds it ("nearest grid point"). The channel is filled from 0.
void count_displaced(const FourierGrid& grid, const std::array<GridField, 3>& psi,
                     const CountChannel& to);

}  // namespace tutti::data
