#pragma once
// Reads TRR: GROMACS' positions, velocities and forces in full precision, big endian, in
// nanometres. Each frame has a header: 1993, 13, 12, "GMX_trn_file", the bytes of ten parts (only
// the box, two tensors, positions, velocities and forces may be present), atoms, step, a number,
// then the time and a parameter in the precision of the parts.

#include "tutti/data/format/array/frames.h"

namespace tutti::data {

bool is_trr(std::span<const uint8_t> head);

/// Opens a TRR. Frames without positions (velocities are often written more often) are skipped and
/// not counted. Handles f32 and f64, which may differ between frames. BadFile.
std::shared_ptr<const Frames> read_trr(const FileBytes& file);

}  // namespace tutti::data
