#include "tutti/train/infer/flood_fill.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <deque>
#include <map>
#include <set>

#include "tutti/base/error.h"
#include "tutti/data/neurons/neuron_set.h"

namespace tutti::train {
namespace {

using VoxelPlace = std::array<int64_t, 3>;

/// The volume with its mirror images around it, as far as a field of view in its corner reaches.
struct MirroredVolume {
  MirroredVolume(const VolumeView& inner, const VoxelPlace& fov) {
    for (size_t a = 0; a < 3; ++a) {
      if (fov[a] > inner.extents[a])
        throw ConfigError(
            fmt::format("the volume [{}] is smaller than tracing.fov [{}]: take a larger volume",
                        fmt::join(inner.extents, ", "), fmt::join(fov, ", ")));
      margin[a] = fov[a] / 2;
      extents[a] = inner.extents[a] + 2 * margin[a];
    }
    const auto from = [&](size_t a, int64_t i) {
      const int64_t at = std::abs(i - margin[a]), last = inner.extents[a] - 1;
      return at <= last ? at : 2 * last - at;
    };
    voxels.reserve(static_cast<size_t>(extents[0] * extents[1] * extents[2]));
    for (int64_t z = 0; z < extents[0]; ++z)
      for (int64_t y = 0; y < extents[1]; ++y) {
        const int64_t row = (from(0, z) * inner.extents[1] + from(1, y)) * inner.extents[2];
        for (int64_t x = 0; x < extents[2]; ++x)
          voxels.push_back(inner.voxels[static_cast<size_t>(row + from(2, x))]);
      }
  }

  VoxelPlace extents{}, margin{};
  std::vector<float> voxels;
};

class Filler {
 public:
  Filler(const FillSpec& spec, const VolumeView& image, const LookFunction& look)
      : spec_(spec), image_(image, spec.fov), look_(look), move_(data::logit(spec.move_threshold)),
        belongs_(data::logit(spec.segment_threshold)), unknown_(data::logit(data::kUnknown)),
        logits_(image_.voxels.size(), unknown_), looked_at_(image_.voxels.size(), 0),
        seen_image_(view_voxels()), seen_logits_(view_voxels()), objects_(image_.voxels.size(), 0) {
  }

  /// Begins an object at a voxel of the volume without its mirror images.
  void begin_at(VoxelPlace seed) {
    for (size_t a = 0; a < 3; ++a) seed[a] += image_.margin[a];
    if (!can_look_at(seed) || objects_[at(seed)] == kTried) return;
    low_ = seed;
    high_ = seed;
    if (grow(seed)) {
      keep();
    } else {
      ++filled_.counts.weak;
      objects_[at(seed)] = kTried;
    }
    forget();
  }
  const FillCounts& counts() const { return filled_.counts; }
  Filled take() {
    for_inside(image_.margin, upper_corner(),
               [&](size_t v) { filled_.objects.push_back(number_of(objects_[v])); });
    return std::move(filled_);
  }

 private:
  size_t view_voxels() const {
    return static_cast<size_t>(spec_.fov[0] * spec_.fov[1] * spec_.fov[2]);
  }
  size_t at(const VoxelPlace& p) const {
    return static_cast<size_t>((p[0] * image_.extents[1] + p[1]) * image_.extents[2] + p[2]);
  }
  bool can_look_at(const VoxelPlace& p) const {
    for (size_t a = 0; a < 3; ++a)
      if (p[a] < spec_.fov[a] / 2 || p[a] >= image_.extents[a] - spec_.fov[a] / 2) return false;
    return objects_[at(p)] <= 0;
  }
  VoxelPlace corner(const VoxelPlace& middle) const {
    return {middle[0] - spec_.fov[0] / 2, middle[1] - spec_.fov[1] / 2,
            middle[2] - spec_.fov[2] / 2};
  }
  /// Calls body(first voxel in the volume, first voxel in the view, number of voxels) for each row.
  template <class Body>
  void for_rows(const VoxelPlace& middle, Body body) const {
    const VoxelPlace from = corner(middle);
    size_t in_view = 0;
    for (int64_t z = 0; z < spec_.fov[0]; ++z)
      for (int64_t y = 0; y < spec_.fov[1]; ++y) {
        body(at({from[0] + z, from[1] + y, from[2]}), in_view, spec_.fov[2]);
        in_view += static_cast<size_t>(spec_.fov[2]);
      }
  }

  bool settles(const float* y) const {
    if (spec_.settle_above < 0) return false;
    const auto own = std::count_if(y, y + view_voxels(), [&](float l) { return l >= move_; });
    return static_cast<double>(own) > spec_.settle_above * static_cast<double>(view_voxels());
  }

  void look_at(const VoxelPlace& middle) {
    for_rows(middle, [&](size_t v, size_t i, int64_t n) {
      std::copy_n(image_.voxels.data() + v, n, seen_image_.data() + i);
      std::copy_n(logits_.data() + v, n, seen_logits_.data() + i);
    });
    const float* y = look_(seen_image_.data(), seen_logits_.data());
    ++filled_.counts.looks;
    const bool settled = settles(y);
    for_rows(middle, [&](size_t v, size_t i, int64_t n) {
      for (const size_t end = v + static_cast<size_t>(n); v < end; ++v, ++i) {
        if (settled && looked_at_[v] && logits_[v] < 0)
          logits_[v] = std::min(logits_[v], y[i]);
        else
          logits_[v] = y[i];
        looked_at_[v] = 1;
      }
    });
    const VoxelPlace from = corner(middle);
    for (size_t a = 0; a < 3; ++a) {
      low_[a] = std::min(low_[a], from[a]);
      high_[a] = std::max(high_[a], from[a] + spec_.fov[a] - 1);
    }
  }

  /// Returns the position of the largest logit on one side of a move's box, perpendicular to
  /// `axis`; the first one if several are equal.
  std::pair<float, VoxelPlace> best_of_side(const VoxelPlace& middle, size_t axis,
                                            int64_t side) const {
    VoxelPlace low{}, high{};
    for (size_t a = 0; a < 3; ++a) {
      low[a] = middle[a] - spec_.deltas[a];
      high[a] = middle[a] + spec_.deltas[a];
    }
    low[axis] = high[axis] = middle[axis] + side * spec_.deltas[axis];
    std::pair<float, VoxelPlace> best{-INFINITY, middle};
    for (int64_t z = low[0]; z <= high[0]; ++z)
      for (int64_t y = low[1]; y <= high[1]; ++y)
        for (int64_t x = low[2]; x <= high[2]; ++x)
          if (const float l = logits_[at({z, y, x})]; l > best.first) best = {l, {z, y, x}};
    return best;
  }
  void queue_moves(const VoxelPlace& middle) {
    std::vector<std::pair<float, VoxelPlace>> moves;
    for (size_t axis = 0; axis < 3; ++axis)
      for (const int64_t side : {-1, 1})
        if (spec_.deltas[axis] > 0)
          if (const auto best = best_of_side(middle, axis, side); best.first >= move_)
            moves.push_back(best);
    std::ranges::stable_sort(moves, std::greater<>{}, &std::pair<float, VoxelPlace>::first);
    for (const auto& move : moves) queue_.push_back(move.second);
  }
  /// Returns the distance from the seed in moves, rounded.
  VoxelPlace step_of(const VoxelPlace& seed, const VoxelPlace& p) const {
    VoxelPlace step{};
    for (size_t a = 0; a < 3; ++a)
      step[a] = static_cast<int64_t>(
          std::floor(static_cast<double>(p[a] - seed[a]) /
                         static_cast<double>(std::max<int64_t>(spec_.deltas[a], 1)) +
                     0.5));
    return step;
  }

  /// Returns false if the first look at the seed does not find it again.
  bool grow(const VoxelPlace& seed) {
    logits_[at(seed)] = data::logit(data::kSeed);
    queue_ = {seed};
    std::set<VoxelPlace> done;
    while (!queue_.empty()) {
      const VoxelPlace middle = queue_.front();
      queue_.pop_front();
      if (!can_look_at(middle) || !done.insert(step_of(seed, middle)).second) continue;
      look_at(middle);
      if (done.size() == 1 && logits_[at(seed)] < move_) return false;
      queue_moves(middle);
    }
    return true;
  }

  /// Returns the last voxel that is not a mirror image.
  VoxelPlace upper_corner() const {
    VoxelPlace corner{};
    for (size_t a = 0; a < 3; ++a) corner[a] = image_.extents[a] - image_.margin[a] - 1;
    return corner;
  }
  template <class Body>
  void for_inside(const VoxelPlace& low, const VoxelPlace& high, Body body) {
    for (int64_t z = low[0]; z <= high[0]; ++z)
      for (int64_t y = low[1]; y <= high[1]; ++y)
        for (int64_t x = low[2]; x <= high[2]; ++x) body(at({z, y, x}));
  }
  void keep() {
    VoxelPlace low{}, high{};
    for (size_t a = 0; a < 3; ++a) {
      low[a] = std::max(low_[a], image_.margin[a]);
      high[a] = std::min(high_[a], upper_corner()[a]);
    }
    int64_t voxels = 0;
    const auto own = [&](size_t v) { return objects_[v] <= 0 && logits_[v] >= belongs_; };
    for_inside(low, high, [&](size_t v) { voxels += own(v); });
    const std::vector<int32_t> same =
        voxels < spec_.min_segment ? std::vector<int32_t>() : objects_that_are_this_one(low, high);
    int32_t id = kTried;
    if (!same.empty()) {
      id = same.front();
      for (const int32_t other : same) joined_[static_cast<size_t>(other)] = id;
      filled_.counts.objects -= std::ssize(same) - 1;
      ++filled_.counts.joined;
    } else if (voxels >= spec_.min_segment) {
      id = static_cast<int32_t>(joined_.size());
      joined_.push_back(id);
      ++filled_.counts.objects;
    } else {
      ++filled_.counts.small;
    }
    for_inside(low, high, [&](size_t v) {
      if (own(v)) objects_[v] = id;
    });
  }

  /// Returns finished objects whose voxels within sight would mostly have belonged to the current
  /// one: two parts of one object that were traced from both ends.
  std::vector<int32_t> objects_that_are_this_one(const VoxelPlace& low, const VoxelPlace& high) {
    constexpr int64_t kFewestShared = 50;
    if (spec_.join_above < 0) return {};
    std::map<int32_t, std::array<int64_t, 2>> met;  // voxels looked at; the new object's
    for_inside(low, high, [&](size_t v) {
      if (objects_[v] <= 0 || !looked_at_[v]) return;
      std::array<int64_t, 2>& one = met[root_of(objects_[v])];
      ++one[0];
      one[1] += logits_[v] >= belongs_;
    });
    std::vector<int32_t> same;
    for (const auto& [id, voxels] : met)
      if (voxels[1] >= kFewestShared &&
          static_cast<double>(voxels[1]) > spec_.join_above * static_cast<double>(voxels[0]))
        same.push_back(id);
    return same;
  }
  int32_t root_of(int32_t id) const {
    while (joined_[static_cast<size_t>(id)] != id) id = joined_[static_cast<size_t>(id)];
    return id;
  }
  /// Numbers objects 1, 2 ... in the order in which take() meets them.
  int32_t number_of(int32_t id) {
    if (id <= 0) return 0;
    return numbers_.try_emplace(root_of(id), static_cast<int32_t>(numbers_.size() + 1))
        .first->second;
  }
  void forget() {
    for_inside(low_, high_, [&](size_t v) {
      logits_[v] = unknown_;
      looked_at_[v] = 0;
    });
  }

  /// Belongs to no object and cannot be a seed again: part of a too small object, or a weak seed.
  static constexpr int32_t kTried = -1;

  const FillSpec spec_;
  const MirroredVolume image_;
  const LookFunction& look_;
  const float move_, belongs_, unknown_;
  std::vector<float> logits_;       // for the current object
  std::vector<uint8_t> looked_at_;  // while filling the current object
  std::vector<float> seen_image_, seen_logits_;
  std::deque<VoxelPlace> queue_;
  VoxelPlace low_{}, high_{};          // touched by the current object, inclusive
  std::vector<int32_t> objects_;       // including the mirror images
  std::vector<int32_t> joined_ = {0};  // the object that each object is part of; often itself
  std::map<int32_t, int32_t> numbers_;
  Filled filled_;
};

}  // namespace

Filled flood_fill(const FillSpec& spec, const VolumeView& image, std::span<const VoxelPlace> seeds,
                  const LookFunction& look, const std::function<void(const FillCounts&)>& news) {
  Filler filler(spec, image, look);
  for (const VoxelPlace& seed : seeds) {
    const int64_t before = filler.counts().looks;
    filler.begin_at(seed);
    if (news && filler.counts().looks != before) news(filler.counts());
  }
  return filler.take();
}

std::vector<VoxelPlace> grid_points(const VoxelPlace& extents, const VoxelPlace& step) {
  VoxelPlace by{};
  for (size_t a = 0; a < 3; ++a) by[a] = std::max<int64_t>(1, step[a]);
  std::vector<VoxelPlace> points;
  for (int64_t z = by[0] / 2; z < extents[0]; z += by[0])
    for (int64_t y = by[1] / 2; y < extents[1]; y += by[1])
      for (int64_t x = by[2] / 2; x < extents[2]; x += by[2]) points.push_back({z, y, x});
  return points;
}

}  // namespace tutti::train
