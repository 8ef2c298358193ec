#pragma once
// DCD: coordinates in single precision, in records as Fortran writes them: a length (32 or 64
// bits), the bytes, the length again. In Angstrom.
//   record 84    "CORD" and 20 numbers: [0] frames, [8] fixed atoms, [10] whether frames have a
//                unit cell, [11] a fourth dimension, [19] CHARMM's version; 0: X-PLOR, which knows
//                neither
//   record       the number of titles, and 80 bytes of each
//   record 4     atoms
//   record       where atoms are fixed: the numbers of the others, from 1 on
//   each frame   a record of 48 bytes where there is a cell, then one each of all x, all y, all z
//                and, where there is one, the fourth; from the second frame on without fixed atoms

#include "tutti/data/format/array/frames.h"
#include "tutti/data/format/molecules/dcd_cell.h"

namespace tutti::data {

/// Whether a file begins as a DCD does, in either byte order.
bool is_dcd(std::span<const uint8_t> head);

/// BadFile, also for velocities. `form`: what the numbers of unit cells mean; unknown: it is
/// decided (dcd_cell_form()).
std::shared_ptr<const Frames> read_dcd(const FileBytes& file,
                                       DcdCellForm form = DcdCellForm::unknown);

/// The arrays of a DCD. Where the form of its unit cells is not decided, kPeriodicArray has that
/// as its problem, and each form that fits is an array by itself: kPeriodicArray_degrees,
/// _cosines, _matrix. With `warns` the log says where the header announces more frames.
std::vector<StoredArray> dcd_arrays(const FileBytes& file, bool warns);

}  // namespace tutti::data
