#pragma once
// Generates volumes of dark matter like CosmoFlow's: the number of particles in each cell of a
// periodic box at four times of the universe, with the four parameters of its cosmology. Any
// number of volumes, each a pure function of (seed, index) on one build and one type of processor:
// FFTW chooses its instructions by the processor, and a different rounding may move a particle at a
// cell's border into the neighbour.
//
// Model:
//   parameters    flat universe of matter, baryons and a cosmological constant; the four parameters
//                 are uniform and independent, see parameter_ranges; omega_b h^2 = 0.0224
//   linear power  Eisenstein & Hu 1998 without wiggles, normalised to sigma_8 (power_spectrum.h)
//   growth        Carroll, Press & Turner 1992 (power_spectrum.h)
//   initial field Gaussian, on a periodic grid of one mode per cell (gaussian_field.h)
//   evolution     second-order Lagrangian perturbation theory on large scales, spherical collapse
//                 on small ones (displacement.h)
//   particles     one starts in the middle of every cell, as CosmoFlow's 512^3 in 512^3 cells, or
//                 several that move together; each is counted in the cell where it ends. Particles
//                 are neither lost nor made.
// Unlike CosmoFlow it has no N-body simulation (halos are smeared over some cells), and every
// volume is a periodic box of its own instead of a cut-out of a larger one.

#include <array>
#include <cstdint>

namespace tutti::generate {

/// The parameters of a universe: matter today in units of the critical density, the rms contrast in
/// spheres of 8 Mpc/h, the tilt of the initial spectrum, and H_0 / (100 km/s/Mpc).
struct Cosmology {
  double omega_m = 0.315;
  double sigma_8 = 0.811;
  double n_s = 0.965;
  double h = 0.674;
};

struct ParameterRange {
  double low, high;
};
inline constexpr double kPublishedSpread = 0.3;
/// Beyond it there are universes with baryons for more than nine tenths of their matter.
inline constexpr double kGreatestSpread = 0.44;

/// Returns the ranges of omega_m, sigma_8, n_s and h: a share `spread` around Planck 2018's 0.315,
/// 0.811, 0.965, 0.674. ConfigError unless it is above 0 and at most kGreatestSpread.
std::array<ParameterRange, 4> parameter_ranges(double spread = kPublishedSpread);

/// Most particles of a cell along an axis. With 8, a 16-bit count can hold the particles of 63
/// cells; with 9, those of 44.
inline constexpr int kMostParticles = 8;

/// The times of a volume's channels.
inline constexpr std::array<double, 4> kRedshifts = {0, 0.5, 1.5, 3};

/// Index of the first volume of a test set. Training sets start at 0, so no volume is in both.
inline constexpr int64_t kFirstTestVolume = int64_t{1} << 40;

struct VolumeSpec {
  int side = 128;   ///< cells along an axis; FFTW is fastest where it has small prime factors
  double cell = 1;  ///< Mpc/h; CosmoFlow's boxes have 512 cells in 512 Mpc/h
  uint64_t seed = 1;
  double spread = kPublishedSpread;  ///< spread of the parameters
  /// Particles of a cell along an axis, 1 to kMostParticles. If cells are larger than the motion of
  /// particles, about 8 Mpc/h, several show motions that a single one in the middle does not.
  int particles = 1;
};

/// Returns the cosmology of a volume.
Cosmology cosmology_of(const VolumeSpec& spec, int64_t index);

/// Returns the parameters in parameter_ranges' order, each mapped from its range to [-1, 1], as the
/// network learns them (CosmoFlow's "unitPar").
std::array<float, 4> unit_parameters(const Cosmology& cosmology, double spread = kPublishedSpread);

/// Fills counts[side][side][side][4] with the particles of volume `index`, channels as kRedshifts:
/// each channel sums to (particles side)^3. Several threads may call it at once. Uses six fields of
/// side^3 floats, and one of int32. ConfigError if a cell gathers more than 32767 particles, which
/// cannot happen with one particle per cell: a cell does not gather the mass of 32^3 cells.
void generate_volume(const VolumeSpec& spec, int64_t index, int16_t* counts);

/// Does the same for a given cosmology, with the random numbers of `index`.
void generate_volume(const VolumeSpec& spec, int64_t index, const Cosmology& cosmology,
                     int16_t* counts);

}  // namespace tutti::generate
