#pragma once
// Makes the native structure of a chain: a bundle of helices, joined by short loops.

#include <array>
#include <cstdint>
#include <vector>

namespace tutti::generate {

using Place = std::array<double, 3>;

inline constexpr int64_t kFewestResidues = 16;
/// Distance of neighbours along the chain, in Angstrom.
inline constexpr double kBond = 3.8;

/// Returns the C-alpha atoms of the fold for a chain of this length, in Angstrom, rounded to
/// thousandths as in a PDB file. Helices of about 12 residues (1.5 Angstrom and 100 degrees per
/// residue, radius 2.3) stand side by side, 8.5 Angstrom apart, alternately up and down; loops have
/// three residues. Neighbours are then drawn to kBond, and others pushed apart, like steric
/// hindrance.
std::vector<Place> native_fold(int64_t residues);

/// Pairs at most this far apart in the native fold are contacts, in Angstrom.
inline constexpr double kContact = 8;

/// A pair of residues that are in contact in the native fold, at least four apart along the chain.
struct NativePair {
  int64_t first = 0, second = 0;
  double distance = 0;
};
std::vector<NativePair> native_pairs(const std::vector<Place>& native);

/// Returns the fraction Q of native pairs that are at most 1.2 times their native distance apart.
double native_fraction(const std::vector<NativePair>& pairs, const std::vector<Place>& places);

}  // namespace tutti::generate
