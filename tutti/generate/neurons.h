#pragma once
// Volumes of simulated nervous tissue, as an electron microscope with voxels of some 10 nm sees it:
// long tubes that wind through the volume, thick here and thin there, with swellings, packed so
// closely that only their membranes part them; some of the tubes end in round cell bodies.
//
//   each voxel belongs to the tube whose axis is nearest, measured in its radius there; where two are
//   nearly as near there is membrane, and far from all of them the space between cells
//   inside it is bright, with darker organelles; membranes are dark; the microscope blurs a little
//   and adds noise
// What is not modelled: branches and synapses, slices that are missing or shifted, staining that
// varies, anisotropic voxels.

#include <cstdint>
#include <vector>

#include "tutti/data/neurons/volume.h"

namespace tutti::data {

struct TissueSpec {
  int64_t side = 96;  ///< voxels
  double radius = 7;  ///< voxels, of a typical tube
  double noise = 12;  ///< standard deviation, of 255
  uint64_t seed = 1;
};

struct Tissue {
  std::vector<uint8_t> image;    ///< [side, side, side]
  std::vector<uint32_t> labels;  ///< 1, 2 ...; 0: membrane or between cells
};

/// Index of the first volume that is not for training.
inline constexpr int64_t kFirstTestTissue = int64_t{1} << 20;

/// A function of (seed, index) alone. ConfigError for a side below 8 or a radius below 2 or above
/// a quarter of the side.
Tissue generate_tissue(const TissueSpec& spec, int64_t index);

}  // namespace tutti::data
