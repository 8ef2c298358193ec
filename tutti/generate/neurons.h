#pragma once
// Generates volumes of simulated nervous tissue, as an electron microscope with voxels of about 10
// nm shows it: long tubes of varying thickness wind through the volume, with swellings, so densely
// packed that only membranes separate them; some tubes end in round cell bodies.
//
//   each voxel belongs to the tube with the nearest axis, measured in its radius there; where two
//   are almost equally near there is membrane, and far from all tubes the space between cells
//   the inside is bright, with darker organelles; membranes are dark; the microscope blurs a little
//   and adds noise
// The model leaves out branches and synapses, missing or shifted slices, varying staining, and
// anisotropic voxels.

#include <cstdint>
#include <vector>

#include "tutti/data/neurons/volume.h"

namespace tutti::generate {

struct TissueSpec {
  int64_t side = 96;  ///< voxels
  double radius = 7;  ///< typical tube's radius, in voxels
  double noise = 12;  ///< standard deviation, on a scale of 255
  uint64_t seed = 1;
};

struct Tissue {
  std::vector<uint8_t> image;    ///< [side, side, side]
  std::vector<uint32_t> labels;  ///< 1, 2 ...; 0: membrane or between cells
};

/// Index of the first volume outside the training set.
inline constexpr int64_t kFirstTestTissue = int64_t{1} << 20;

/// Generates a volume: a function of (seed, index) alone. ConfigError for a side below 8, or a
/// radius below 2 or above a quarter of the side.
Tissue generate_tissue(const TissueSpec& spec, int64_t index);

}  // namespace tutti::generate
