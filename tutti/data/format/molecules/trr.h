#pragma once
// TRR: GROMACS' positions, velocities and forces in full precision, big endian, in nanometres.
// Each frame has a header: 1993, 13, 12, "GMX_trn_file", the bytes of ten parts (only the box, two
// tensors, positions, velocities and forces may be there), atoms, step, a number, then the time and
// a parameter in the precision of the parts.

#include "tutti/data/format/array/frames.h"

namespace tutti::data {

bool is_trr(std::span<const uint8_t> head);

/// Frames without positions (velocities are often written more often) are passed over, and not
/// counted. f32 and f64, which may differ from frame to frame. BadFile.
std::shared_ptr<const Frames> read_trr(const FileBytes& file);

}  // namespace tutti::data
