#pragma once
// A Selection says which atoms of a topology to take:
//
//   NAMES [residues RANGES] [chain IDS] [atoms RANGES]
//
//   NAMES    CA, CA+CB, or any
//   RANGES   12, 12-40, 12-40+55-60: residue numbers as in the file (52A counts as 52), or the
//            atoms' indices in the file, from 0
//   IDS      A, A+B: chains, or segments of a PSF
// An atom is selected if it meets all conditions. Selected atoms keep the order of the file.

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "tutti/data/format/molecules/topology.h"

namespace tutti::data {

struct Selection {
  using Ranges = std::vector<std::pair<int64_t, int64_t>>;  ///< first and last

  std::string text{};                 ///< as given
  std::vector<std::string> names{};   ///< empty: any
  std::vector<std::string> chains{};  ///< empty: any
  Ranges residues{}, atoms{};         ///< empty: any
};

/// Parses a selection. ConfigError naming the word that is not understood.
Selection parse_selection(std::string_view text);

/// Returns the indices of the selected atoms. With a name in the selection, ions are excluded:
/// their residue has the name of the atom (calcium is CA of CA). ConfigError if no atom is
/// selected, naming the file, the condition that no atom meets, and the existing names.
std::vector<int64_t> selected_atoms(const Topology& topology, const Selection& selection);

}  // namespace tutti::data
