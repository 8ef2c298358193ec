#pragma once
// DCD: coordinates in single precision, in records as Fortran writes them: a length (32 bits), the
// bytes, the length again. In Angstrom.
//   record 84    "CORD" and 20 numbers: [8] fixed atoms, [10] whether frames have a unit cell, [11]
//                a fourth dimension, [19] CHARMM's version; 0: X-PLOR, which knows neither
//   record       titles
//   record 4     atoms
//   each frame   a record of 48 bytes where there is a cell, then one each of all x, all y, all z

#include "tutti/data/format/molecules/frames.h"

namespace tutti::data {

/// Whether a file begins as a DCD does, in either byte order.
bool is_dcd(std::span<const uint8_t> head);

/// BadFile, also for what is refused: fixed atoms (frames hold the others alone), a fourth
/// dimension, velocities, record lengths of 64 bits.
std::shared_ptr<const Frames> read_dcd(const FileBytes& file);

}  // namespace tutti::data
