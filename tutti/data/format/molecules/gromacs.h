#pragma once
// Reads GROMACS' trajectories, big endian, in nanometres.
// XTC has compressed coordinates. A frame is:
//   1995 (or 2023), atoms, step, time (f32), box (9 f32), atoms again; then
//   up to 9 atoms   3 f32 each
//   more            precision (f32), least and greatest integer along x, y, z, the first small size
//                   (xtc_bits.h), the number of bytes (64 bits if 2023), the bytes, up to a
//                   multiple of 4
// TRR has positions, velocities and forces in full precision. Each frame has a header: 1993, 13,
// 12, "GMX_trn_file", the bytes of ten parts (only the box, two tensors, positions, velocities and
// forces may be present), atoms, step, a number, then the time and a parameter in the precision of
// the parts.

#include "tutti/data/format/array/frames.h"

namespace tutti::data {

bool is_xtc(std::span<const uint8_t> head);
bool is_trr(std::span<const uint8_t> head);

/// Opens an XTC. BadFile.
std::shared_ptr<const Frames> read_xtc(const FileBytes& file);

/// Opens a TRR. Frames without positions (velocities are often written more often) are skipped and
/// not counted. Handles f32 and f64, which may differ between frames. BadFile.
std::shared_ptr<const Frames> read_trr(const FileBytes& file);

}  // namespace tutti::data
