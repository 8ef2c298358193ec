#pragma once
// Where training begins. Around most voxels of a neuron there is mostly that neuron, or mostly
// others; a network that saw them as often as they are would learn little of the rest. So voxels
// are dealt out to parts, by the fraction of the surroundings that is of the voxel's own object
// (its active fraction), and each part is drawn from as often.

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "tutti/data/neurons/volume.h"

namespace tutti::data {

struct SeedRule {
  Voxels3 surroundings{};  ///< extents of the box around a voxel, odd; it must lie in the volume
  int64_t min_object = 1;  ///< voxels
  std::vector<double> bounds{};  ///< rising; part k: those with k of them at or below the fraction
  uint64_t seed = 1;             ///< of the draw
};

/// The part of each voxel; kNoSeed where training does not begin: outside of objects, in small
/// ones, and near the edges of the volume. bounds.size() < 255.
inline constexpr uint8_t kNoSeed = 255;
std::vector<uint8_t> seed_parts(const Volume& volume, const SeedRule& rule);

struct SeedPoint {
  size_t volume = 0;
  Voxels3 at{};
  bool operator==(const SeedPoint&) const = default;
};

/// An endless list of points: point i is of the (i mod n)-th of the n parts that are not empty,
/// drawn from it evenly, with replacement: a function of (seed, i).
class SeedPoints {
 public:
  /// BadFile where no volume has a voxel to begin at.
  SeedPoints(std::span<const Volume> volumes, const SeedRule& rule);
  /// Those that others have found: the extents of their volumes, and their parts(), which stay as
  /// long as `keeper`.
  SeedPoints(uint64_t seed, std::vector<Voxels3> extents,
             std::vector<std::span<const uint64_t>> parts, std::shared_ptr<const void> keeper);
  SeedPoint operator[](int64_t i) const;
  /// Voxels to begin at.
  int64_t voxels() const { return voxels_; }
  /// Of the parts that are not empty, their voxels, counted over all volumes.
  const std::vector<std::span<const uint64_t>>& parts() const { return parts_; }

 private:
  uint64_t seed_;
  std::vector<Voxels3> extents_;
  std::vector<int64_t> first_;  ///< voxel of each volume, counted over all
  std::vector<std::span<const uint64_t>> parts_;
  std::shared_ptr<const void> keeper_;  ///< of the parts
  int64_t voxels_ = 0;
};

}  // namespace tutti::data
