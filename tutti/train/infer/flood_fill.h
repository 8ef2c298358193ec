#pragma once
// Flood filling: cuts a whole volume into objects. From the image and from an object's voxels known
// so far, a network decides which voxels belong to the object (Januszewski et al. 2018).
//
//   object      one seed, whose logits grow while the field of view moves. A move's box lies around
//               the field's middle: after each look, the field moves to the voxel with the largest
//               logit on each of the box's six sides, where that logit reaches the threshold, the
//               largest first. Each place, counted in moves from the seed, is looked at once. Where
//               the object fills much of the field of view, voxels that an earlier look excluded
//               (below one half) stay excluded: otherwise an object that has met a membrane would
//               grow back behind it
//   volume      seeds in their order, except those in finished objects; a later object never takes
//               or moves to an earlier one's voxels. An object that would have had most voxels it
//               sees of a finished one is that same object, met from its other end

#include <array>
#include <cstdint>
#include <functional>
#include <span>
#include <vector>

namespace tutti::train {

struct FillSpec {
  std::array<int64_t, 3> fov{}, deltas{};  ///< z, y, x; fov odd
  double move_threshold = 0.9, segment_threshold = 0.6;
  int64_t min_segment = 1000;  ///< voxels
  /// Part of the field of view that reaches move_threshold: above it, excluded voxels stay
  /// excluded; negative: never.
  double settle_above = 0.005;
  /// Part of a finished object's voxels, within sight of the current object: where the latter would
  /// have had more than this part, both are one object; negative: never.
  double join_above = 0.5;
};

/// A volume: extents and its voxels, row-major.
struct VolumeView {
  std::array<int64_t, 3> extents{};
  std::span<const float> voxels;
};

/// Returns a field of view's logits from its image and the logits so far; all row-major.
using LookFunction = std::function<const float*(const float* image, const float* logits)>;

struct FillCounts {
  int64_t looks = 0;  ///< runs of the network
  int64_t objects = 0;
  int64_t joined = 0;  ///< fills that turned out to be parts of finished objects
  int64_t weak = 0;    ///< seeds that the first look lost
  int64_t small = 0;   ///< objects that were left out as too small
};

struct Filled {
  std::vector<int32_t> objects;  ///< 1, 2 ... in the order of their first voxels; 0: none
  FillCounts counts;
};

/// Fills `image` from `seeds`, which are voxels. Where a field of view leaves the volume it sees
/// the volume's mirror image. `news` is called after each object. Throws ConfigError where the
/// field of view is larger than the volume.
Filled flood_fill(const FillSpec& spec, const VolumeView& image,
                  std::span<const std::array<int64_t, 3>> seeds, const LookFunction& look,
                  const std::function<void(const FillCounts&)>& news = {});

/// Returns voxels to begin at: peaks of the distance from edges of the image, the largest distance
/// first. An edge is where the gradient of the slightly smoothed image is above its own mean in the
/// surroundings.
std::vector<std::array<int64_t, 3>> distance_peaks(const VolumeView& image);
/// Returns voxels `step` apart, starting half a step from the first corner.
std::vector<std::array<int64_t, 3>> grid_points(const std::array<int64_t, 3>& extents,
                                                const std::array<int64_t, 3>& step);

}  // namespace tutti::train
