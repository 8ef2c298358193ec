#pragma once
// Flood filling: a whole volume cut into objects by a network that says, of what it sees and of
// what is known of an object there, which voxels are the object's (Januszewski et al. 2018).
//
//   object      one seed, whose logits grow while the field of view moves: after each look, of the six
//               sides of the box of a move around its middle, to the voxel with the largest logit of
//               each side that reaches the threshold, the largest first; a place is looked at once,
//               counted in moves from the seed. Where much of the field of view is the object's, what an
//               earlier look has found not to be (below one half) stays so: else an object that has
//               met a membrane would grow back behind it
//   volume      seeds in their order, but those in objects that are done; what an object has taken, no
//               later one takes or moves to. One that would have had most of what it sees of an object
//               that is done is the same one, met from its other end

#include <array>
#include <cstdint>
#include <functional>
#include <span>
#include <vector>

namespace tutti {

struct FillSpec {
  std::array<int64_t, 3> fov{}, deltas{};  ///< z, y, x; fov odd
  double move_threshold = 0.9, segment_threshold = 0.6;
  int64_t min_segment = 1000;  ///< voxels
  /// Of the field of view, that reaches move_threshold: above this, what is not the object's stays
  /// so; negative: never.
  double settle_above = 0.005;
  /// Of the voxels of an object that is done, within sight of the one under way: where that would
  /// have had more than this part, both are one object; negative: never.
  double join_above = 0.5;
};

/// A volume: extents and its voxels, row-major.
struct VolumeView {
  std::array<int64_t, 3> extents{};
  std::span<const float> voxels;
};

/// Logits of a field of view, of the image there and the logits so far; all row-major.
using LookFunction = std::function<const float*(const float* image, const float* logits)>;

struct FillCounts {
  int64_t looks = 0;  ///< of the network
  int64_t objects = 0;
  int64_t joined = 0;  ///< fills that were parts of objects that were done
  int64_t weak = 0;    ///< seeds that the first look lost
  int64_t small = 0;   ///< objects that were left out
};

struct Filled {
  std::vector<int32_t> objects;  ///< 1, 2 ... in the order of their first voxels; 0: none
  FillCounts counts;
};

/// `seeds`: voxels. Where a field of view leaves the volume it sees the volume's mirror image.
/// `news` hears of each object. ConfigError where the field of view is larger than the volume.
Filled flood_fill(const FillSpec& spec, const VolumeView& image,
                  std::span<const std::array<int64_t, 3>> seeds, const LookFunction& look,
                  const std::function<void(const FillCounts&)>& news = {});

/// Voxels to begin at: peaks of the distance from edges of the image, the largest distance first.
/// An edge is where the gradient of the image, smoothed a little, is above its own mean in the
/// surroundings.
std::vector<std::array<int64_t, 3>> distance_peaks(const VolumeView& image);
/// Voxels `step` apart, half a step from the first corner on.
std::vector<std::array<int64_t, 3>> grid_points(const std::array<int64_t, 3>& extents,
                                                const std::array<int64_t, 3>& step);

}  // namespace tutti
