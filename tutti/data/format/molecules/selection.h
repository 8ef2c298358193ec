#pragma once
// Selections: which atoms of a topology.
//
//   NAMES [residues RANGES] [chain IDS] [atoms RANGES]
//
//   NAMES    CA, CA+CB, or any
//   RANGES   12, 12-40, 12-40+55-60: residue numbers as the file writes them (52A is 52), or the
//            atoms' places in the file, counted from 0
//   IDS      A, A+B: chains, of PSF segments
// An atom is selected that meets all of them. Selected atoms keep the order of the file.

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "tutti/data/format/molecules/topology.h"

namespace tutti::data {

struct Selection {
  using Ranges = std::vector<std::pair<int64_t, int64_t>>;  ///< first and last

  std::string text{};                 ///< as it was given
  std::vector<std::string> names{};   ///< empty: any
  std::vector<std::string> chains{};  ///< empty: any
  Ranges residues{}, atoms{};         ///< empty: any
};

/// ConfigError naming the word that cannot be understood.
Selection parse_selection(std::string_view text);

/// The atoms, by their places. Where a name is asked for, ions, whose residue has the name of the
/// atom (calcium is CA of CA), are none of them. ConfigError where no atom is selected: it names
/// the file, what none of its atoms is, and what there is.
std::vector<int64_t> selected_atoms(const Topology& topology, const Selection& selection);

}  // namespace tutti::data
