#pragma once
// The native structure of a chain: a bundle of helices, joined by short loops.

#include <array>
#include <cstdint>
#include <vector>

namespace tutti::data {

using Place = std::array<double, 3>;

inline constexpr int64_t kFewestResidues = 16;
/// Between neighbours along the chain, in Angstrom.
inline constexpr double kBond = 3.8;

/// The C-alpha atoms of the fold that a chain of this length has, in Angstrom, rounded to
/// thousandths as a PDB file holds them. Helices of about 12 residues (1.5 Angstrom and 100 degrees
/// a residue, radius 2.3) stand side by side, 8.5 Angstrom apart, up and down in turns; loops have
/// three residues. Neighbours are then drawn to kBond, and others pushed apart, as steric hindrance
/// does.
std::vector<Place> native_fold(int64_t residues);

/// Native distances of pairs at most this far apart are contacts, in Angstrom.
inline constexpr double kContact = 8;

/// A pair of residues that are in contact in the native fold, at least four apart along the chain.
struct NativePair {
  int64_t first = 0, second = 0;
  double distance = 0;
};
std::vector<NativePair> native_pairs(const std::vector<Place>& native);

/// The fraction Q of native pairs that are at most 1.2 times their native distance apart.
double native_fraction(const std::vector<NativePair>& pairs, const std::vector<Place>& places);

}  // namespace tutti::data
