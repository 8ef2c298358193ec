#pragma once
// Reads XTC: GROMACS' compressed coordinates, big endian, in nanometres. A frame is:
//   1995 (or 2023), atoms, step, time (f32), box (9 f32), atoms again; then
//   up to 9 atoms   3 f32 each
//   more            precision (f32), least and greatest integer along x, y, z, the first small size
//                   (xtc_bits.h), the number of bytes (64 bits if 2023), the bytes, up to a
//                   multiple of 4

#include "tutti/data/format/array/frames.h"

namespace tutti::data {

bool is_xtc(std::span<const uint8_t> head);

/// Opens an XTC. BadFile.
std::shared_ptr<const Frames> read_xtc(const FileBytes& file);

}  // namespace tutti::data
