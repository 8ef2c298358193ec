#pragma once
// Interprets the six numbers of a DCD's unit cell. A file does not say which form it has:
//
//   degrees   A gamma B beta alpha C: lengths, and angles in degrees (X-PLOR, OpenMM, MDAnalysis)
//   cosines   the same with cosines of the angles (NAMD, VMD, LAMMPS, mdconvert, catdcd)
//   matrix    xx xy yy xz yz zz of a symmetric matrix, which has the cell's vectors as rows and the
//             axes of the coordinates (CHARMM from version 22 on, cpptraj)

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "tutti/data/format/array/unit_cell.h"

namespace tutti::data {

using DcdCellNumbers = std::array<double, 6>;  ///< as stored, lengths in Angstrom

enum class DcdCellForm : uint8_t { unknown, degrees, cosines, matrix };
inline constexpr std::array kDcdCellForms = {DcdCellForm::degrees, DcdCellForm::cosines,
                                             DcdCellForm::matrix};
/// Returns "degrees" and so on; "" for unknown.
std::string_view name_of(DcdCellForm form);

/// The header's information about the program that wrote it.
struct DcdOrigin {
  int64_t version = 0;  ///< CHARMM's version; other programs also write 24
  std::string titles{};
};

/// Returns the forms in which the numbers are a cell with angles of 15 to 165 degrees.
std::vector<DcdCellForm> fitting_forms(const DcdCellNumbers& stored);
/// Says whether all of these forms give the same cell, to a ten-thousandth of its sides.
bool is_same_cell(const DcdCellNumbers& stored, std::span<const DcdCellForm> forms);

/// Determines the form of a file from the cells of some of its frames (without absent cells): by
/// the numbers if only one form fits, else by the version (below 22: no matrix; 22, 23 and from 25
/// on: the matrix), by titles of known programs, and by angles that are no accident (60, 70.53, 90
/// as degrees, 109.47 and 120). `unknown` if nothing decides, the sources contradict each other, no
/// form fits, or all forms mean the same.
DcdCellForm dcd_cell_form(std::span<const DcdCellNumbers> cells, const DcdOrigin& origin);

/// Returns the cell of numbers in a known form. If the stored vectors do not lie along UnitCell's
/// axes, `xyz` (3 numbers per atom) is rotated with them to axes where they do.
UnitCell dcd_unit_cell(const DcdCellNumbers& stored, DcdCellForm form, std::span<float> xyz);

/// Returns "lengths 30 30 30, angles 90 91.9 90", for messages.
std::string cell_text(const DcdCellNumbers& stored, DcdCellForm form);

}  // namespace tutti::data
