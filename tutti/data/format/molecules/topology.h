#pragma once
// A Topology has the atoms of a molecule in the order of its trajectories, by name. Formats:
//
//   PDB    lines ATOM and HETATM, in columns; only the first model, or the first frame before END,
//          and only the first of an atom's alternative places
//   GRO    a title, the number of atoms, a line per atom in columns; only the first frame
//   PSF    after "N !NATOM" a line per atom: number, segment (may be blank), residue's number and
//          name, the atom's name, its type ...; in columns, wide ones in a PSF EXT, or in words
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
  /// As in the file: programs add an insertion code (52A) or, beyond 9999, letters.
  std::string residue_number{};
  std::string chain{};  ///< for PSF the segment; empty if there is none
};

struct Topology {
  std::string file{};
  std::vector<Atom> atoms{};
};

/// Reads a topology. Tells the format by the content, and PDB and GRO by their endings .pdb, .ent
/// and .gro. BadFile naming the file, the line and the remedy.
Topology read_topology(const std::filesystem::path& path);

// These read one format each; `text` is the whole file, `name` is for messages.
std::vector<Atom> read_pdb_atoms(std::string_view text, const std::string& name);
std::vector<Atom> read_gro_atoms(std::string_view text, const std::string& name);
std::vector<Atom> read_psf_atoms(std::string_view text, const std::string& name);
std::vector<Atom> read_parm7_atoms(std::string_view text, const std::string& name);

/// Reads the lines of a text, one after the other, without their ends. BadFile names the line.
class TextLines {
 public:
  TextLines(std::string_view text, const std::string& name) : rest_(text), name_(name) {}

  /// Gets the next line; false at the end.
  bool next(std::string_view& line);
  /// Returns the next line. BadFile if there is none.
  std::string_view expect(std::string_view what);
  size_t bytes_left() const { return rest_.size(); }
  [[noreturn]] void refuse(std::string_view why) const;

 private:
  std::string_view rest_;
  const std::string& name_;
  int64_t number_ = 0;
};

/// Returns columns [first, first + count) of a line without blanks at both ends; the line may be
/// shorter.
std::string_view columns_of(std::string_view line, size_t first, size_t count);
/// Parses a whole number that fills the text; false if it does not.
bool whole_number_of(std::string_view text, int64_t& number);

}  // namespace tutti::data
