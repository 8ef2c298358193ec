#pragma once
// Topology: the atoms of a molecule in the order of its trajectories, by name.
//
//   PDB    lines ATOM and HETATM, in columns; of several models, or frames between lines END, the
//          first, and of an atom's alternative places the first
//   GRO    a title, the number of atoms, a line an atom in columns; of several frames the first
//   PSF    after "N !NATOM" a line an atom: number, segment (which may be blank), residue's number
//          and name, the atom's name, its type ...; in columns, wide ones of a PSF EXT, or in words
//   parm7  (prmtop) sections with a Fortran format each: ATOM_NAME, RESIDUE_LABEL, RESIDUE_POINTER

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "tutti/data/file/file_bytes.h"

namespace tutti::data {

struct Atom {
  std::string name{};     ///< "CA"
  std::string residue{};  ///< "GLY"
  /// As it is written: programs give an insertion code (52A) or, beyond 9999, letters.
  std::string residue_number{};
  std::string chain{};  ///< of PSF the segment; empty where the format or the file has none
};

struct Topology {
  std::string file{};
  std::vector<Atom> atoms{};
};

/// Tells the format by the content, and PDB and GRO by their endings .pdb, .ent and .gro. BadFile
/// naming the file, the line and what to do.
Topology read_topology(const std::filesystem::path& path);

// The formats by themselves; `text` is the whole file, `name` for messages.
std::vector<Atom> read_pdb_atoms(std::string_view text, const std::string& name);
std::vector<Atom> read_gro_atoms(std::string_view text, const std::string& name);
std::vector<Atom> read_psf_atoms(std::string_view text, const std::string& name);
std::vector<Atom> read_parm7_atoms(std::string_view text, const std::string& name);

/// Lines of a text, one after the other, without their ends. BadFile names the line.
class TextLines {
 public:
  TextLines(std::string_view text, const std::string& name) : rest_(text), name_(name) {}

  /// False at the end.
  bool next(std::string_view& line);
  /// BadFile where there is none.
  std::string_view expect(std::string_view what);
  size_t bytes_left() const { return rest_.size(); }
  [[noreturn]] void refuse(std::string_view why) const;

 private:
  std::string_view rest_;
  const std::string& name_;
  int64_t number_ = 0;
};

/// Columns [first, first + count) of a line, blanks at both ends left out; a line may be shorter.
std::string_view columns_of(std::string_view line, size_t first, size_t count);
/// A whole number that is the whole text; false where it is none.
bool whole_number_of(std::string_view text, int64_t& number);

}  // namespace tutti::data
