#pragma once
// SeedPoints chooses where training begins. Around most voxels of a neuron there is mostly that
// neuron, or mostly others; a network that saw voxels in their natural proportions would learn
// little about the rest. So voxels are divided into parts, by the fraction of the surroundings that
// belongs to the voxel's own object (its active fraction), and each part is drawn from equally
// often.

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "tutti/data/neurons/volume.h"

namespace tutti::data {

struct SeedRule {
  Voxels3 surroundings{};  ///< extents of the box around a voxel, odd; it must lie in the volume
  int64_t min_object = 1;  ///< least size of an object, in voxels
  std::vector<double> bounds{};  ///< rising; part k: fractions at or above exactly k of them
  uint64_t seed = 1;             ///< seed of the draw
};

/// Returns the part of each voxel; kNoSeed where training does not begin: outside of objects, in
/// small ones, and near the edges of the volume. bounds.size() < 255.
inline constexpr uint8_t kNoSeed = 255;
std::vector<uint8_t> seed_parts(const Volume& volume, const SeedRule& rule);

struct SeedPoint {
  size_t volume = 0;
  Voxels3 at{};
  bool operator==(const SeedPoint&) const = default;
};

/// An endless list of points: point i belongs to the (i mod n)-th of the n non-empty parts, from
/// which it is drawn uniformly, with replacement: a function of (seed, i).
class SeedPoints {
 public:
  /// BadFile where no volume has a voxel to begin at.
  SeedPoints(std::span<const Volume> volumes, const SeedRule& rule);
  /// Uses points that another rank has found: the extents of their volumes, and their parts(),
  /// which live as long as `keeper`.
  SeedPoints(uint64_t seed, std::vector<Voxels3> extents,
             std::vector<std::span<const uint64_t>> parts, std::shared_ptr<const void> keeper);
  SeedPoint operator[](int64_t i) const;
  /// Returns the number of voxels at which training may begin.
  int64_t voxels() const { return voxels_; }
  /// Returns the voxels of each non-empty part, numbered over all volumes.
  const std::vector<std::span<const uint64_t>>& parts() const { return parts_; }

 private:
  uint64_t seed_;
  std::vector<Voxels3> extents_;
  std::vector<int64_t> first_;  ///< number of each volume's first voxel, counted over all volumes
  std::vector<std::span<const uint64_t>> parts_;
  std::shared_ptr<const void> keeper_;  ///< owner of the parts
  int64_t voxels_ = 0;
};

}  // namespace tutti::data
