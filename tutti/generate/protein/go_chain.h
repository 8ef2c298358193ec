#pragma once
// GoChain is a Go model with one bead per residue: the native structure is the minimum of every
// term of its energy (after Clementi, Nymeyer, Onuchic 2000).
//
//   bonds       k_b (r - r0)^2, neighbours
//   angles      k_a (r - r0)^2, next neighbours: the distance represents the angle
//   turns       k_t ((v - v0) / 55)^2, for the volume v spanned by three consecutive bonds: it
//               represents the dihedral angle and tells left from right, without its poles
//   contacts    e (5 (r0/r)^12 - 6 (r0/r)^10), native pairs, with e such that they sum to
//               1.6 a residue: chains of any length fold at about the same temperature
//   others      (4 Angstrom / r)^12: excluded volume
//
// Units: Angstrom, the model's own energy, the mass of a residue; the Boltzmann constant is 1.

#include <vector>

#include "tutti/base/numeric/rng.h"
#include "tutti/generate/protein/native_fold.h"

namespace tutti::generate {

/// Moves by Langevin dynamics. It uses only additions, multiplications, divisions and square roots,
/// which every processor rounds the same way: a chain's path is a function of the seed. For one
/// thread.
class GoChain {
 public:
  /// Starts at rest in the native structure.
  explicit GoChain(std::vector<Place> native);

  /// Does one step of kStep at this temperature: kick, drift, friction and random force, drift,
  /// kick (BAOAB, Leimkuhler and Matthews 2013). Random numbers are uniform with the variance of a
  /// normal, which gives the same averages (Duenweg and Paul 1991).
  void step(double temperature, Rng& rng);

  /// Returns the energy of `places`; fills `forces`, minus its gradient.
  double energy(const std::vector<Place>& places, std::vector<Place>& forces) const;
  const std::vector<Place>& places() const { return places_; }
  const std::vector<NativePair>& pairs() const { return pairs_; }
  double native_fraction() const { return generate::native_fraction(pairs_, places_); }

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
  std::vector<std::pair<size_t, size_t>> others_;  ///< pairs with only excluded volume
};

}  // namespace tutti::generate
