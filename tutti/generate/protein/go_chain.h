#pragma once
// A Go model of one bead a residue: the native structure is the minimum of every term of its
// energy (after Clementi, Nymeyer, Onuchic 2000).
//
//   bonds       k_b (r - r0)^2, neighbours
//   angles      k_a (r - r0)^2, next neighbours: the distance stands for the angle
//   turns       k_t ((v - v0) / 55)^2, of the volume v that three bonds in a row span: it stands for
//               the dihedral angle and tells left from right, without its poles
//   contacts    e (5 (r0/r)^12 - 6 (r0/r)^10), native pairs, with e such that all of them make
//               1.6 a residue: chains of any length fold at about the same temperature
//   others      (4 Angstrom / r)^12: excluded volume
//
// Units: Angstrom, the model's own energy, the mass of a residue; the Boltzmann constant is 1.

#include <vector>

#include "tutti/base/numeric/rng.h"
#include "tutti/generate/protein/native_fold.h"

namespace tutti::data {

/// Moves by Langevin dynamics. Additions, multiplications, divisions and square roots alone, which
/// every processor rounds alike: a chain's way is a function of the seed. One thread.
class GoChain {
 public:
  /// Starts as the native structure, at rest.
  explicit GoChain(std::vector<Place> native);

  /// One step of kStep at this temperature: kick, drift, friction and chance, drift, kick (BAOAB,
  /// Leimkuhler and Matthews 2013). Chance is uniform with the variance that a normal one has,
  /// which leads to the same averages (Duenweg and Paul 1991).
  void step(double temperature, Rng& rng);

  /// Of the present places; fills `forces`, minus its gradient.
  double energy(const std::vector<Place>& places, std::vector<Place>& forces) const;
  const std::vector<Place>& places() const { return places_; }
  const std::vector<NativePair>& pairs() const { return pairs_; }
  double native_fraction() const { return data::native_fraction(pairs_, places_); }

  static constexpr double kStep = 0.05;
  static constexpr double kFriction = 0.05;

 private:
  struct Spring {
    size_t first, second;
    double length, strength;
  };

  std::vector<Place> places_, velocities_, forces_;
  std::vector<NativePair> pairs_;
  std::vector<Spring> springs_;
  std::vector<double> turns_;                      ///< native volumes
  std::vector<std::pair<size_t, size_t>> others_;  ///< pairs that only keep apart
};

}  // namespace tutti::data
