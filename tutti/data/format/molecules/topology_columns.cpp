// Reads PDB and GRO: a line per atom, in columns.

#include <fmt/format.h>

#include <algorithm>

#include "tutti/data/format/molecules/topology.h"

namespace tutti::data {
namespace {

/// Says whether b is an alternative place of a: the same atom of the same residue, right after it
/// or in a block after the residue's first places.
bool same_atom(const Atom& a, const Atom& b) {
  return a.name == b.name && a.residue_number == b.residue_number && a.chain == b.chain;
}

bool has_been(const std::vector<Atom>& atoms, const Atom& atom) {
  constexpr size_t kMostInResidue = 1000;  // limits the time for a file with one huge residue
  const size_t first = atoms.size() - std::min(atoms.size(), kMostInResidue);
  for (size_t i = atoms.size(); i > first && atoms[i - 1].residue_number == atom.residue_number;
       --i)
    if (same_atom(atoms[i - 1], atom)) return true;
  return false;
}

[[noreturn]] void refuse_second_molecule(const TextLines& lines) {
  lines.refuse(
      "other atoms follow behind the end: two files were joined; split them and name the one that "
      "the trajectory is of");
}

}  // namespace

std::vector<Atom> read_pdb_atoms(std::string_view text, const std::string& name) {
  std::vector<Atom> atoms, frame;  // the first frame, and the current one
  TextLines lines(text, name);
  const auto end_frame = [&] {
    if (atoms.empty()) atoms = frame;
    if (!frame.empty() && frame.size() != atoms.size()) refuse_second_molecule(lines);
    frame.clear();
  };
  bool in_model = false, ended = false;
  std::string_view line;
  while (lines.next(line)) {
    const bool model = line.starts_with("MODEL ");
    if (line.starts_with("ENDMDL") || (in_model && model)) {
      ended = true;
      break;
    }
    in_model |= model;
    if (columns_of(line, 0, 6) == "END") {
      ended = true;
      end_frame();
    }
    if (!line.starts_with("ATOM  ") && !line.starts_with("HETATM")) continue;
    // Columns as the format counts them, from 1: name 13-16, alternative 17, residue 18-20 (21
    // where names have four letters), chain 22, number and insertion code 23-27.
    Atom atom{.name = std::string(columns_of(line, 12, 4)),
              .residue = std::string(columns_of(line, 17, 4)),
              .residue_number = std::string(columns_of(line, 22, 5)),
              .chain = std::string(columns_of(line, 21, 1))};
    if (atom.name.empty() || atom.residue_number.empty())
      lines.refuse(
          "expected an atom's name in columns 13 to 16 and its residue's number in 23 to "
          "26: the line is damaged, or no PDB; fetch the file again");
    const bool alternative = line.size() > 16 && line[16] != ' ';
    if (alternative && has_been(frame, atom)) continue;
    if (!atoms.empty() && (frame.size() == atoms.size() || !same_atom(atoms[frame.size()], atom)))
      refuse_second_molecule(lines);
    frame.push_back(std::move(atom));
  }
  end_frame();
  if (atoms.empty()) lines.refuse("the file has no line ATOM or HETATM: expected a PDB of atoms");
  if (in_model && !ended)
    lines.refuse("the file ends in a model, expected ENDMDL: it is truncated; fetch it again");
  constexpr size_t kCoordinatesEnd = 54;
  if (!text.ends_with('\n') && line.size() < kCoordinatesEnd &&
      (line.starts_with("ATOM  ") || line.starts_with("HETATM")))
    lines.refuse("the file ends in the middle of a line: it is truncated; fetch it again");
  return atoms;
}

std::vector<Atom> read_gro_atoms(std::string_view text, const std::string& name) {
  TextLines lines(text, name);
  lines.expect("a title");
  int64_t count = 0;
  if (!whole_number_of(columns_of(lines.expect("the number of atoms"), 0, text.size()), count) ||
      count < 1)
    lines.refuse("expected the number of atoms on the second line: the file is no GRO, or damaged");
  // A line has at least 20 columns before its coordinates.
  if (count > static_cast<int64_t>(lines.bytes_left() / 20) + 1)
    lines.refuse(fmt::format(
        "the file announces {} atoms, and has {} bytes left: it is truncated; fetch it again",
        count, lines.bytes_left()));
  std::vector<Atom> atoms;
  for (int64_t i = 0; i < count; ++i) {
    const std::string_view line = lines.expect(fmt::format("{} atoms, found {}", count, i));
    Atom atom{.name = std::string(columns_of(line, 10, 5)),
              .residue = std::string(columns_of(line, 5, 5)),
              .residue_number = std::string(columns_of(line, 0, 5))};
    int64_t number = 0;
    if (atom.name.empty() || !whole_number_of(atom.residue_number, number))
      lines.refuse(
          "expected an atom: a residue's number in columns 1 to 5, and a name in 11 to "
          "15: the line is damaged, or there are fewer atoms than announced");
    atoms.push_back(std::move(atom));
  }
  lines.expect("the unit cell behind the atoms");
  // Another frame begins: a title and the number of the same atoms.
  std::string_view line;
  int64_t again = 0;
  if (lines.next(line) && lines.next(line) &&
      whole_number_of(columns_of(line, 0, line.size()), again) && again != count)
    refuse_second_molecule(lines);
  return atoms;
}

}  // namespace tutti::data
