#pragma once
// Generates convergent-beam electron diffraction: the far-field pattern of a focused probe on a
// crystal. Any number of samples, each a pure function of (seed, index) on one build.
//
// Model: multislice.h with Kirkland's potentials, thermal motion as Debye-Waller factors, one pure
// crystal in a box with the probe on an atom column of the cell's corner. It leaves out independent
// motion of atoms (frozen phonons: no diffuse scattering, no Kikuchi bands), absorption, the energy
// spread and size of the source, the detector's blur, and bent foils.

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "tutti/generate/microscopy/multislice.h"

namespace tutti::generate {

struct CbedSpec {
  int side = 64;  ///< pixels of a pattern's side
  double kilovolts = 200;
  double convergence = 6;              ///< half the cone's angle, mrad
  double angle = 32;                   ///< half the pattern's angle, mrad
  double thinnest = 4, thickest = 20;  ///< nm
  double tilt = 6;                     ///< mrad, maximum about x and y each
  double azimuth = 5;                  ///< degrees about the beam, maximum
  double strain = 0.03;                ///< maximum change of the cell's edges across the beam
  double dose = 1e6;                   ///< electrons in a pattern; 0: no noise
  std::string crystal{};  ///< see crystals_named(); empty: all but graphene, classes equally often
  uint64_t seed = 1;
};

/// Index of the first sample of a test set. Training sets start at 0, so no sample is in both.
inline constexpr int64_t kFirstTestCbed = int64_t{1} << 40;

struct CbedSample {
  /// [side][side], y outermost, the beam's direction at [side / 2][side / 2]: electrons in each
  /// pixel relative to the mean of all electrons sent, so that a uniform pattern is 1 everywhere.
  std::vector<float> pattern{};
  /// [side][side] around the probe: the crystal's potential along the beam, averaged over its
  /// depth, in V. A pixel is wavelength / (3 angle).
  std::vector<float> potential{};
  CrystalClass kind{};
  /// Tilt about x and y, thickness and strain, each mapped to [-1, 1] from the specification's
  /// range. Thickness is a whole number of slices.
  std::array<float, 4> parameters{};
};

/// Several threads may call it.
class CbedGenerator {
 public:
  /// ConfigError if the optics or the crystal do not fit.
  explicit CbedGenerator(const CbedSpec& spec);
  CbedSample sample(int64_t index) const;

 private:
  CbedSpec spec_;
  std::vector<std::vector<const Crystal*>> classes_;  ///< each with its substances
  WaveGrid grid_;
  WaveField probe_;
};

}  // namespace tutti::generate
