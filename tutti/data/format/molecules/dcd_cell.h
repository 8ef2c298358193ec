#pragma once
// The six numbers of a DCD's unit cell: a file does not say which of three forms it has.
//
//   degrees   A gamma B beta alpha C: lengths, and angles in degrees (X-PLOR, OpenMM, MDAnalysis)
//   cosines   the same with the cosines of the angles (NAMD, VMD, LAMMPS, mdconvert, catdcd)
//   matrix    xx xy yy xz yz zz of a symmetric matrix, whose rows are the cell's vectors and whose
//             axes are those of the coordinates (CHARMM from version 22 on, cpptraj)

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "tutti/data/format/array/unit_cell.h"

namespace tutti::data {

using DcdCellNumbers = std::array<double, 6>;  ///< as they are stored, lengths in Angstrom

enum class DcdCellForm : uint8_t { unknown, degrees, cosines, matrix };
inline constexpr std::array kDcdCellForms = {DcdCellForm::degrees, DcdCellForm::cosines,
                                             DcdCellForm::matrix};
/// "degrees"; of unknown "".
std::string_view name_of(DcdCellForm form);

/// A header's words about the program that wrote it.
struct DcdOrigin {
  int64_t version = 0;  ///< CHARMM's; 24 is also written by programs that are not CHARMM
  std::string titles{};
};

/// The forms in which the numbers are a cell with angles of 15 to 165 degrees.
std::vector<DcdCellForm> fitting_forms(const DcdCellNumbers& stored);
/// Whether they are the same cell in all of these forms, to a ten-thousandth of its sides.
bool is_same_cell(const DcdCellNumbers& stored, std::span<const DcdCellForm> forms);

/// The form of a file from the cells of some of its frames, those without a cell left out. Decided
/// by the numbers where they fit one form alone, then by the version (below 22: no matrix; 22, 23
/// and from 25 on: the matrix), by titles of known programs, and by angles that are no accident
/// (60, 70.53, 90 as degrees, 109.47 and 120). `unknown` where nothing decides, where the sources
/// contradict each other, where nothing fits, and where the forms mean the same.
DcdCellForm dcd_cell_form(std::span<const DcdCellNumbers> cells, const DcdOrigin& origin);

/// The cell of numbers in a known form. Where the stored vectors do not lie along the axes as
/// UnitCell has them, `xyz` (3 numbers an atom) is turned to axes in which they do.
UnitCell dcd_unit_cell(const DcdCellNumbers& stored, DcdCellForm form, std::span<float> xyz);

/// "lengths 30 30 30, angles 90 91.9 90", for messages.
std::string cell_text(const DcdCellNumbers& stored, DcdCellForm form);

}  // namespace tutti::data
