#pragma once
// Implements the multislice method (Cowley and Moodie 1957; Kirkland, "Advanced computing in
// electron microscopy", chapter 6): a crystal is a stack of thin slices, each of which shifts the
// wave's phase by its projected potential; between them the wave travels through vacuum.

#include "tutti/generate/microscopy/wave_grid.h"

namespace tutti::generate {

/// The lens that forms the probe; angles in radians, lengths in Angstrom.
struct ProbeLens {
  double kilovolts = 200;
  double convergence = 0.006;  ///< half-angle of the cone
  double defocus = 0;          ///< underfocus is positive
  double spherical = 0;        ///< third-order coefficient
};

/// Returns the modes of a probe at the origin, with total intensity 1. The aperture's edge is one
/// mode wide, so that its area changes smoothly. ConfigError if the cone does not fit the band.
WaveField probe_modes(const WaveGrid& grid, const ProbeLens& lens);

/// The effect of one crystal's slices on a wave, and of the vacuum between them.
class Multislice {
 public:
  /// Tilts of the crystal against the beam, in radians: the propagator is shifted, which holds for
  /// a few degrees.
  struct Tilt {
    double x = 0, y = 0;
  };
  Multislice(const WaveGrid& grid, const Crystal& crystal, const CrystalPose& pose,
             double kilovolts, const Tilt& tilt);

  double slice_thickness() const { return thickness_; }

  /// Takes the wave, given as modes, through `slices` slices from the crystal's first on. With a
  /// band below 1, waves scattered beyond it are lost; otherwise the intensity is conserved.
  void propagate(WaveField& modes, int64_t slices) const;

  /// Returns the potential along the beam, averaged over a cell's depth, in V.
  std::vector<float> mean_potential() const;

 private:
  void make_transmissions(const Crystal& crystal, const CrystalPose& pose, double kilovolts);
  void make_propagator(double kilovolts, const Tilt& tilt);

  const WaveGrid& grid_;
  double thickness_;
  std::vector<WaveField> transmissions_;  ///< exp(i sigma V) of each slice of the cell
  WaveField propagator_, potential_;      ///< including 1 / positions; modes of the mean potential
};

}  // namespace tutti::generate
