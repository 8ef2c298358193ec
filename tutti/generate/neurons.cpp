#include "tutti/generate/neurons.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <numbers>
#include <utility>

#include "tutti/base/error.h"
#include "tutti/base/numeric/rng.h"

namespace tutti::generate {
namespace {

using Point3 = std::array<double, 3>;

/// Streams of random numbers for one volume.
enum class TissuePart : uint64_t { tubes = 0, organelles = 1, noise = 2 };

Rng stream_of(const TissueSpec& spec, int64_t index, TissuePart part, int64_t number) {
  return Rng(spec.seed, Purpose::generate,
             (uint64_t{5} << 60) | (static_cast<uint64_t>(index) << 32) |
                 (static_cast<uint64_t>(part) << 28) | static_cast<uint64_t>(number));
}

/// Finds the nearest tubes of each voxel, with distances in radii.
class NearestTubes {
 public:
  explicit NearestTubes(int64_t side)
      : side_(side), best_(static_cast<size_t>(side * side * side), kFar), second_(best_),
        radius_(best_.size(), 1.0f), owner_(best_.size(), 0) {}

  /// Adds a ball of the tube `id`, for voxels within kReach radii.
  void add(uint32_t id, const Point3& at, double radius) {
    const double reach = kReach * radius;
    std::array<int64_t, 3> low{}, high{};
    for (size_t i = 0; i < 3; ++i) {
      low[i] = std::max<int64_t>(0, static_cast<int64_t>(std::ceil(at[i] - reach)));
      high[i] = std::min(side_ - 1, static_cast<int64_t>(std::floor(at[i] + reach)));
    }
    for (int64_t z = low[0]; z <= high[0]; ++z)
      for (int64_t y = low[1]; y <= high[1]; ++y)
        for (int64_t x = low[2]; x <= high[2]; ++x) {
          const double dz = static_cast<double>(z) - at[0], dy = static_cast<double>(y) - at[1],
                       dx = static_cast<double>(x) - at[2];
          const auto d = static_cast<float>(std::sqrt(dz * dz + dy * dy + dx * dx) / radius);
          if (d < kReach)
            meet(static_cast<size_t>((z * side_ + y) * side_ + x), id, d,
                 static_cast<float>(radius));
        }
  }
  /// Returns the object; 0: membrane, or between cells.
  uint32_t owner(size_t voxel) const {
    const bool membrane = (second_[voxel] - best_[voxel]) * radius_[voxel] < kMembrane;
    return outside(voxel) || membrane ? 0 : owner_[voxel];
  }
  bool outside(size_t voxel) const { return best_[voxel] >= kInside; }

 private:
  static constexpr float kFar = 1e9f, kReach = 2.4f, kInside = 1.6f, kMembrane = 1.8f;

  void meet(size_t voxel, uint32_t id, float d, float radius) {
    if (id == owner_[voxel]) {
      if (d >= best_[voxel]) return;
    } else if (d < best_[voxel]) {
      second_[voxel] = best_[voxel];
      owner_[voxel] = id;
    } else {
      second_[voxel] = std::min(second_[voxel], d);
      return;
    }
    best_[voxel] = d;
    radius_[voxel] = radius;
  }

  int64_t side_;
  std::vector<float> best_, second_;  // distances to the nearest tube, and to the nearest other one
  std::vector<float> radius_;         // the nearest tube's radius
  std::vector<uint32_t> owner_;       // 0: none yet
};

Point3 direction(Rng& rng) {
  const double z = 2.0 * rng.uniform() - 1, turn = 2 * std::numbers::pi * rng.uniform();
  const double r = std::sqrt(std::max(0.0, 1 - z * z));
  return {z, r * std::sin(turn), r * std::cos(turn)};
}

/// Grows a tube from a point in both directions until it leaves the volume.
void grow_tube(const TissueSpec& spec, Rng& rng, uint32_t id, NearestTubes& nearest) {
  const auto side = static_cast<double>(spec.side);
  const Point3 start = {side * rng.uniform(), side * rng.uniform(), side * rng.uniform()},
               ahead = direction(rng);
  const double own = spec.radius * (0.7 + 0.7 * rng.uniform()), wave = 30 + 60 * rng.uniform(),
               phase = 2 * std::numbers::pi * rng.uniform();
  if (rng.below(8) == 0) nearest.add(id, start, 2 * own);  // a cell body
  for (const double sign : {1.0, -1.0}) {
    Point3 at = start, step = {sign * ahead[0], sign * ahead[1], sign * ahead[2]};
    for (int64_t i = 0; i < 4 * spec.side; ++i) {
      nearest.add(id, at,
                  own * (1 + 0.35 * std::sin(phase + sign * static_cast<double>(i) * 2 *
                                                         std::numbers::pi / wave)));
      const Point3 turn = direction(rng);
      double length = 0;
      for (size_t a = 0; a < 3; ++a) {
        step[a] += 0.12 * turn[a];
        length += step[a] * step[a];
      }
      bool inside = true;
      for (size_t a = 0; a < 3; ++a) {
        step[a] /= std::sqrt(length);
        at[a] += step[a];
        inside = inside && at[a] > -spec.radius && at[a] < side + spec.radius;
      }
      if (!inside) break;
    }
  }
}

/// Averages each voxel with its six neighbours, itself counted twice.
std::vector<float> blurred(const std::vector<float>& x, int64_t side) {
  std::vector<float> y(x.size());
  const auto at = [&](int64_t z, int64_t row, int64_t column) {
    const auto clamp = [side](int64_t i) { return std::clamp<int64_t>(i, 0, side - 1); };
    return x[static_cast<size_t>((clamp(z) * side + clamp(row)) * side + clamp(column))];
  };
  size_t i = 0;
  for (int64_t z = 0; z < side; ++z)
    for (int64_t r = 0; r < side; ++r)
      for (int64_t c = 0; c < side; ++c)
        y[i++] = (2 * at(z, r, c) + at(z - 1, r, c) + at(z + 1, r, c) + at(z, r - 1, c) +
                  at(z, r + 1, c) + at(z, r, c - 1) + at(z, r, c + 1)) /
                 8;
  return y;
}

/// Adds dark bodies inside of cells: mitochondria, a third of a tube in size.
void add_organelles(const TissueSpec& spec, int64_t index, const NearestTubes& nearest,
                    std::vector<float>& grey) {
  Rng rng = stream_of(spec, index, TissuePart::organelles, 0);
  const auto side = static_cast<double>(spec.side);
  const double radius = spec.radius / 2.5;
  const auto count = static_cast<int64_t>(side * side * side / (700 * radius * radius * radius));
  const auto reach = static_cast<int64_t>(std::ceil(radius));
  for (int64_t n = 0; n < count; ++n) {
    std::array<int64_t, 3> middle{};
    for (int64_t& m : middle) m = rng.below(static_cast<uint32_t>(spec.side));
    const auto voxel = [&](int64_t z, int64_t y, int64_t x) {
      return static_cast<size_t>((z * spec.side + y) * spec.side + x);
    };
    const uint32_t own = nearest.owner(voxel(middle[0], middle[1], middle[2]));
    for (int64_t z = -reach; own != 0 && z <= reach; ++z)
      for (int64_t y = -reach; y <= reach; ++y)
        for (int64_t x = -reach; x <= reach; ++x) {
          const int64_t vz = middle[0] + z, vy = middle[1] + y, vx = middle[2] + x;
          if (static_cast<double>(z * z + y * y + x * x) > radius * radius ||
              std::min({vz, vy, vx}) < 0 || std::max({vz, vy, vx}) >= spec.side)
            continue;
          if (nearest.owner(voxel(vz, vy, vx)) == own) grey[voxel(vz, vy, vx)] = 105;
        }
  }
}

/// Adds membrane where objects still touch, since radii change along an axis.
void part_objects(int64_t side, std::vector<uint32_t>& labels) {
  const auto voxels = static_cast<int64_t>(labels.size());
  for (int64_t v = 0; v < voxels; ++v) {
    const std::array<std::pair<int64_t, bool>, 3> next = {
        {{v + 1, v % side + 1 < side},
         {v + side, v / side % side + 1 < side},
         {v + side * side, v / (side * side) + 1 < side}}};
    uint32_t& own = labels[static_cast<size_t>(v)];
    for (const auto& [other, inside] : next)
      if (own != 0 && inside && labels[static_cast<size_t>(other)] != 0 &&
          labels[static_cast<size_t>(other)] != own)
        own = 0;
  }
}

}  // namespace

Tissue generate_tissue(const TissueSpec& spec, int64_t index) {
  if (spec.side < 8 || spec.radius < 2 || spec.radius > static_cast<double>(spec.side) / 4)
    throw ConfigError(
        fmt::format("a volume of --side {} with tubes of --radius {}: the side is 8 or more, the "
                    "radius from 2 "
                    "to a quarter of the side",
                    spec.side, spec.radius));
  NearestTubes nearest(spec.side);
  // A tube crosses the volume with about `side` voxels of length; this many fill it with overlap.
  const double side = static_cast<double>(spec.side), area = 4 * spec.radius * spec.radius;
  const auto tubes = std::max<int64_t>(2, static_cast<int64_t>(1.6 * side * side / area));
  for (int64_t t = 0; t < tubes; ++t) {
    Rng rng = stream_of(spec, index, TissuePart::tubes, t);
    grow_tube(spec, rng, static_cast<uint32_t>(t + 1), nearest);
  }
  const auto voxels = static_cast<size_t>(spec.side * spec.side * spec.side);
  Tissue tissue{.image = std::vector<uint8_t>(voxels), .labels = std::vector<uint32_t>(voxels)};
  std::vector<float> grey(voxels);
  for (size_t v = 0; v < voxels; ++v) tissue.labels[v] = nearest.owner(v);
  part_objects(spec.side, tissue.labels);
  for (size_t v = 0; v < voxels; ++v) {
    grey[v] = tissue.labels[v] != 0 ? 155.0f : nearest.outside(v) ? 110.0f : 65.0f;
  }
  add_organelles(spec, index, nearest, grey);
  grey = blurred(grey, spec.side);
  const auto slice = static_cast<size_t>(spec.side * spec.side);
  for (int64_t z = 0; z < spec.side; ++z) {
    Rng rng = stream_of(spec, index, TissuePart::noise, z);
    for (size_t v = static_cast<size_t>(z) * slice; v < static_cast<size_t>(z + 1) * slice; ++v) {
      const float value = grey[v] + static_cast<float>(spec.noise) * rng.normal();
      tissue.image[v] = static_cast<uint8_t>(std::lround(std::clamp(value, 0.0f, 255.0f)));
    }
  }
  return tissue;
}

}  // namespace tutti::generate
