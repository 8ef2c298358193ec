#pragma once
// Reads DCD: coordinates in single precision, in records as Fortran writes them: a length (32 or
// 64 bits), the bytes, the length again. In Angstrom.
//   record 84    "CORD" and 20 numbers: [0] frames, [8] fixed atoms, [10] whether frames have a
//                unit cell, [11] a fourth dimension, [19] CHARMM's version; 0: X-PLOR, which has
//                neither
//   record       the number of titles, and 80 bytes for each
//   record 4     atoms
//   record       if atoms are fixed: the numbers of the other atoms, from 1 on
//   each frame   a record of 48 bytes if there is a cell, then one each for all x, all y, all z
//                and, if present, the fourth; from the second frame on without fixed atoms

#include "tutti/data/format/array/frames.h"
#include "tutti/data/format/molecules/dcd_cell.h"

namespace tutti::data {

/// Says whether a file begins like a DCD, in either byte order.
bool is_dcd(std::span<const uint8_t> head);

/// Opens a DCD. BadFile, also for velocities. `form`: the form of its unit cells; unknown: it is
/// determined (dcd_cell_form()).
std::shared_ptr<const Frames> read_dcd(const FileBytes& file,
                                       DcdCellForm form = DcdCellForm::unknown);

/// Returns the arrays of a DCD. If the form of its unit cells is undecided, kPeriodicArray has this
/// as its problem, and there is an array for each possible form: kPeriodicArray_degrees, _cosines,
/// _matrix. With `warns` it logs if the header announces more frames.
std::vector<StoredArray> dcd_arrays(const FileBytes& file, bool warns);

}  // namespace tutti::data
