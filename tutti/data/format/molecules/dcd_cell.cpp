#include "tutti/data/format/molecules/dcd_cell.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numbers>

#include "tutti/base/error.h"

namespace tutti::data {
namespace {

constexpr double kLeastAngle = 15, kGreatestAngle = 165;

using CellVector = std::array<double, 3>;
struct LengthsAndAngles {
  CellVector lengths{}, degrees{};  // alpha beta gamma
};

double scalar_product(const CellVector& a, const CellVector& b) {
  return a[0] * b[0] + a[1] * b[1] + a[2] * b[2];
}

std::array<CellVector, 3> rows_of_matrix(const DcdCellNumbers& s) {
  return {CellVector{s[0], s[1], s[3]}, CellVector{s[1], s[2], s[4]}, CellVector{s[3], s[4], s[5]}};
}

/// Returns exactly 90 for 0.
double degrees_of(double cosine) { return 90 - std::asin(cosine) * 180 / std::numbers::pi; }

LengthsAndAngles in_form(const DcdCellNumbers& s, DcdCellForm form) {
  LengthsAndAngles cell{{s[0], s[2], s[5]}, {s[4], s[3], s[1]}};
  if (form == DcdCellForm::cosines)
    for (double& x : cell.degrees) x = degrees_of(x);
  if (form != DcdCellForm::matrix) return cell;
  const auto rows = rows_of_matrix(s);
  for (size_t i = 0; i < 3; ++i) cell.lengths[i] = std::sqrt(scalar_product(rows[i], rows[i]));
  for (size_t i = 0; i < 3; ++i) {
    const size_t j = (i + 1) % 3, k = (i + 2) % 3;
    cell.degrees[i] =
        degrees_of(scalar_product(rows[j], rows[k]) / (cell.lengths[j] * cell.lengths[k]));
  }
  return cell;
}

bool fits(const DcdCellNumbers& s, DcdCellForm form) {
  if (!std::ranges::all_of(s, [](double x) { return std::isfinite(x); })) return false;
  const LengthsAndAngles cell = in_form(s, form);
  const bool lengths = s[0] > 0 && s[2] > 0 && s[5] > 0;
  const bool angles = std::ranges::all_of(
      cell.degrees, [](double x) { return x >= kLeastAngle && x <= kGreatestAngle; });
  if (!lengths || !angles || !is_sound_cell(unit_cell_of(cell.lengths, cell.degrees))) return false;
  // A symmetric matrix of a cell mirrors nothing: all of its leading minors are above 0.
  return form != DcdCellForm::matrix ||
         (s[0] * s[2] > s[1] * s[1] && s[0] * (s[2] * s[5] - s[4] * s[4]) -
                                               s[1] * (s[1] * s[5] - s[4] * s[3]) +
                                               s[3] * (s[1] * s[4] - s[2] * s[3]) >
                                           0);
}

/// Says whether an angle is one of octahedra, dodecahedra and hexagonal cells, or 90 in degrees, to
/// the precision of a file: in another form such a number would be an accident.
bool has_known_angle(const DcdCellNumbers& s, DcdCellForm form) {
  return std::ranges::any_of(in_form(s, form).degrees, [&](double x) {
    constexpr double kOfOctahedra = 70.528779;
    const bool right = form == DcdCellForm::degrees && x == 90;
    return right || std::ranges::any_of(std::array{60.0, 120.0, kOfOctahedra, 180 - kOfOctahedra},
                                        [&](double known) { return std::abs(x - known) < 3e-3; });
  });
}

bool has_word(const std::string& text, std::initializer_list<std::string_view> words) {
  std::string lower = text;
  for (char& c : lower)
    if ('A' <= c && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  return std::ranges::any_of(words,
                             [&](std::string_view word) { return lower.find(word) != lower.npos; });
}

/// The form according to the header: the matrix, another form, or undecided.
enum class Says : uint8_t { nothing, matrix, no_matrix };

Says form_by(const DcdOrigin& origin) {
  if (origin.version < 22) return Says::no_matrix;
  if (origin.version != 24) return Says::matrix;
  // CHARMM's titles begin with '*'; MDAnalysis leaves them blank.
  if (origin.titles.starts_with('*') || has_word(origin.titles, {"cpptraj"})) return Says::matrix;
  return origin.titles.empty() ||
                 has_word(origin.titles, {"namd", "dcd plugin", "lammps", "openmm", "hoomd",
                                          "genesis", "prody", "mdtraj", "vmd", "catdcd"})
             ? Says::no_matrix
             : Says::nothing;
}

}  // namespace

std::string_view name_of(DcdCellForm form) {
  switch (form) {
    case DcdCellForm::unknown: return "";
    case DcdCellForm::degrees: return "degrees";
    case DcdCellForm::cosines: return "cosines";
    case DcdCellForm::matrix: return "matrix";
  }
  CHECK(false, "form {}", static_cast<int>(form));
}

std::vector<DcdCellForm> fitting_forms(const DcdCellNumbers& stored) {
  std::vector<DcdCellForm> forms;
  for (const DcdCellForm form : kDcdCellForms)
    if (fits(stored, form)) forms.push_back(form);
  return forms;
}

bool is_same_cell(const DcdCellNumbers& stored, std::span<const DcdCellForm> forms) {
  std::array<float, 9> first{};
  for (size_t i = 0; i < forms.size(); ++i) {
    const LengthsAndAngles cell = in_form(stored, forms[i]);
    const UnitCell vectors = unit_cell_of(cell.lengths, cell.degrees);
    if (i == 0) first = vectors;
    for (size_t k = 0; k < 9; ++k)
      if (std::abs(vectors[k] - first[k]) > 1e-4f * std::max({first[0], first[4], first[8]}))
        return false;
  }
  return true;
}

DcdCellForm dcd_cell_form(std::span<const DcdCellNumbers> cells, const DcdOrigin& origin) {
  std::vector<DcdCellForm> forms(kDcdCellForms.begin(), kDcdCellForms.end());
  for (const DcdCellNumbers& stored : cells)
    std::erase_if(forms, [&](DcdCellForm form) { return !fits(stored, form); });
  const bool same =
      std::ranges::all_of(cells, [&](const auto& stored) { return is_same_cell(stored, forms); });
  if (forms.size() == 1) return forms.front();
  if (same) return DcdCellForm::unknown;
  const auto known = [&](DcdCellForm form) {
    return std::ranges::all_of(cells, [&](const auto& s) { return has_known_angle(s, form); });
  };
  const auto is_matrix = [](DcdCellForm form) { return form == DcdCellForm::matrix; };
  const Says says = form_by(origin);
  std::vector<DcdCellForm> by_angles = forms, by_header = forms;
  std::erase_if(by_angles, [&](DcdCellForm form) { return !known(form); });
  if (says == Says::matrix && std::ranges::any_of(forms, is_matrix))
    by_header = {DcdCellForm::matrix};
  if (says == Says::no_matrix) std::erase_if(by_header, is_matrix);
  if (by_header.size() > 1)
    std::erase_if(by_header, [&](DcdCellForm form) {
      return !by_angles.empty() && std::ranges::find(by_angles, form) == by_angles.end();
    });
  const bool agree = by_angles.size() != 1 || by_header.size() != 1 || by_angles == by_header;
  return by_header.size() == 1 && agree ? by_header.front() : DcdCellForm::unknown;
}

UnitCell dcd_unit_cell(const DcdCellNumbers& stored, DcdCellForm form, std::span<float> xyz) {
  const LengthsAndAngles cell = in_form(stored, form);
  if (form != DcdCellForm::matrix) return unit_cell_of(cell.lengths, cell.degrees);
  // Axes such that the first vector has only x, and the second only x and y, by Gram and Schmidt.
  std::array<CellVector, 3> axes = rows_of_matrix(stored);
  for (size_t i = 0; i < 3; ++i) {
    for (size_t j = 0; j < i; ++j) {
      const double along = scalar_product(axes[i], axes[j]);
      for (size_t k = 0; k < 3; ++k) axes[i][k] -= along * axes[j][k];
    }
    const double length = std::sqrt(scalar_product(axes[i], axes[i]));
    for (double& x : axes[i]) x /= length;
  }
  for (size_t at = 0; at + 3 <= xyz.size(); at += 3) {
    const CellVector point = {double{xyz[at]}, double{xyz[at + 1]}, double{xyz[at + 2]}};
    for (size_t k = 0; k < 3; ++k) xyz[at + k] = static_cast<float>(scalar_product(point, axes[k]));
  }
  return unit_cell_of(cell.lengths, cell.degrees);
}

std::string cell_text(const DcdCellNumbers& stored, DcdCellForm form) {
  const auto [lengths, degrees] = in_form(stored, form);
  return fmt::format("lengths {:.6g} {:.6g} {:.6g}, angles {:.6g} {:.6g} {:.6g}", lengths[0],
                     lengths[1], lengths[2], degrees[0], degrees[1], degrees[2]);
}

}  // namespace tutti::data
