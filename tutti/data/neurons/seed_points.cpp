#include "tutti/data/neurons/seed_points.h"

#include <fmt/ranges.h>

#include <algorithm>

#include "tutti/base/error.h"
#include "tutti/base/numeric/rng.h"
#include "tutti/data/file/file_bytes.h"

namespace tutti::data {
namespace {

struct VoxelBox {
  Voxels3 low{}, high{};  // [low, high)

  Voxels3 sides() const { return {high[0] - low[0], high[1] - low[1], high[2] - low[2]}; }
};

VoxelBox overlap(const VoxelBox& a, const VoxelBox& b) {
  VoxelBox c;
  for (size_t i = 0; i < 3; ++i) {
    c.low[i] = std::max(a.low[i], b.low[i]);
    c.high[i] = std::max(c.low[i], std::min(a.high[i], b.high[i]));
  }
  return c;
}

template <class Body>
void for_each_voxel(const VoxelBox& box, Body body) {
  for (int64_t z = box.low[0]; z < box.high[0]; ++z)
    for (int64_t y = box.low[1]; y < box.high[1]; ++y)
      for (int64_t x = box.low[2]; x < box.high[2]; ++x) body(Voxels3{z, y, x});
}

int64_t place_in(const Voxels3& extents, const Voxels3& at) {
  return (at[0] * extents[1] + at[1]) * extents[2] + at[2];
}

struct ObjectBox {
  VoxelBox box{{INT64_MAX, INT64_MAX, INT64_MAX}, {0, 0, 0}};
  int64_t voxels = 0;
};

std::vector<ObjectBox> boxes_of_objects(const Volume& volume) {
  std::vector<ObjectBox> objects;
  for_each_voxel({{0, 0, 0}, volume.extents}, [&](const Voxels3& at) {
    const size_t id = volume.labels[static_cast<size_t>(place_in(volume.extents, at))];
    if (id >= objects.size()) objects.resize(id + 1);
    ++objects[id].voxels;
    for (size_t i = 0; i < 3; ++i) {
      objects[id].box.low[i] = std::min(objects[id].box.low[i], at[i]);
      objects[id].box.high[i] = std::max(objects[id].box.high[i], at[i] + 1);
    }
  });
  return objects;
}

/// Counts an object's voxels in any box, from sums over the boxes that start at the object's corner
/// (Crow 1984, "Summed-area tables for texture mapping").
class ObjectCounts {
 public:
  ObjectCounts(const Volume& volume, uint32_t id, const VoxelBox& box)
      : box_(box), sides_(box.sides()) {
    for (int64_t& side : sides_) ++side;
    sums_.assign(static_cast<size_t>(product(sides_)), 0);
    for_each_voxel(box, [&](const Voxels3& at) {
      const Voxels3 to = inside(at, 1);
      int64_t sum = volume.labels[static_cast<size_t>(place_in(volume.extents, at))] == id;
      for (int corner = 1; corner < 8; ++corner) {
        Voxels3 from = to;
        for (size_t i = 0; i < 3; ++i) from[i] -= corner >> i & 1;
        sum += (__builtin_popcount(static_cast<unsigned>(corner)) % 2 == 1 ? 1 : -1) * sum_at(from);
      }
      sums_[static_cast<size_t>(place_in(sides_, to))] = sum;
    });
  }
  int64_t in(const VoxelBox& wanted) const {
    const VoxelBox part = overlap(wanted, box_);
    int64_t count = 0;
    for (int corner = 0; corner < 8; ++corner) {
      Voxels3 at{};
      for (size_t i = 0; i < 3; ++i) at[i] = corner >> i & 1 ? part.low[i] : part.high[i];
      count += (__builtin_popcount(static_cast<unsigned>(corner)) % 2 == 1 ? -1 : 1) *
               sum_at(inside(at, 0));
    }
    return count;
  }

 private:
  Voxels3 inside(const Voxels3& at, int64_t more) const {
    return {at[0] - box_.low[0] + more, at[1] - box_.low[1] + more, at[2] - box_.low[2] + more};
  }
  int64_t sum_at(const Voxels3& place) const {
    return sums_[static_cast<size_t>(place_in(sides_, place))];
  }
  VoxelBox box_;
  Voxels3 sides_;
  std::vector<int64_t> sums_;
};

VoxelBox around(const Voxels3& at, const Voxels3& extents) {
  VoxelBox box;
  for (size_t i = 0; i < 3; ++i) {
    box.low[i] = at[i] - extents[i] / 2;
    box.high[i] = box.low[i] + extents[i];
  }
  return box;
}

/// Returns the voxels whose surroundings lie in the volume.
VoxelBox inner_box(const Voxels3& volume, const Voxels3& surroundings) {
  VoxelBox box;
  for (size_t i = 0; i < 3; ++i) {
    box.low[i] = surroundings[i] / 2;
    box.high[i] = volume[i] - (surroundings[i] - surroundings[i] / 2) + 1;
  }
  return box;
}

}  // namespace

std::vector<uint8_t> seed_parts(const Volume& volume, const SeedRule& rule) {
  CHECK(rule.bounds.size() < kNoSeed, "{} bounds", rule.bounds.size());
  std::vector<uint8_t> parts(volume.labels.size(), kNoSeed);
  const std::vector<ObjectBox> objects = boxes_of_objects(volume);
  const VoxelBox middle = inner_box(volume.extents, rule.surroundings);
  const auto whole = static_cast<double>(product(rule.surroundings));
  for (uint32_t id = 1; id < objects.size(); ++id) {
    const VoxelBox places = overlap(objects[id].box, middle);
    if (objects[id].voxels < rule.min_object || product(places.sides()) == 0) continue;
    const ObjectCounts counts(volume, id, objects[id].box);
    for_each_voxel(places, [&](const Voxels3& at) {
      const auto place = static_cast<size_t>(place_in(volume.extents, at));
      if (volume.labels[place] != id) return;
      const double fraction = static_cast<double>(counts.in(around(at, rule.surroundings))) / whole;
      parts[place] = static_cast<uint8_t>(std::ranges::upper_bound(rule.bounds, fraction) -
                                          rule.bounds.begin());
    });
  }
  return parts;
}

SeedPoints::SeedPoints(std::span<const Volume> volumes, const SeedRule& rule) : seed_(rule.seed) {
  std::vector<std::vector<uint64_t>> parts(rule.bounds.size() + 1);
  int64_t first = 0;
  for (const Volume& volume : volumes) {
    const std::vector<uint8_t> part = seed_parts(volume, rule);
    for (size_t i = 0; i < part.size(); ++i)
      if (part[i] != kNoSeed) parts[part[i]].push_back(static_cast<uint64_t>(first) + i);
    extents_.push_back(volume.extents);
    first_.push_back(first);
    first += product(volume.extents);
  }
  const auto own = std::make_shared<const std::vector<std::vector<uint64_t>>>(std::move(parts));
  for (const std::vector<uint64_t>& part : *own) {
    voxels_ += std::ssize(part);
    if (!part.empty()) parts_.emplace_back(part);
  }
  keeper_ = own;
  if (parts_.empty())
    throw BadFile(
        "{}: there is no voxel to begin at: no object of tracing.min_object = {} voxels or more "
        "lies where [{}] voxels around a voxel are in the volume [{}]; take larger volumes, a "
        "smaller tracing.fov or smaller objects",
        volumes.empty() ? "no volume" : volumes.front().name, rule.min_object,
        fmt::join(rule.surroundings, ", "),
        fmt::join(volumes.empty() ? Voxels3{} : volumes.front().extents, ", "));
}

SeedPoints::SeedPoints(uint64_t seed, std::vector<Voxels3> extents,
                       std::vector<std::span<const uint64_t>> parts,
                       std::shared_ptr<const void> keeper)
    : seed_(seed), extents_(std::move(extents)), parts_(std::move(parts)),
      keeper_(std::move(keeper)) {
  int64_t first = 0;
  for (const Voxels3& one : extents_) {
    first_.push_back(first);
    first += product(one);
  }
  for (const std::span<const uint64_t> part : parts_) voxels_ += std::ssize(part);
  CHECK(voxels_ > 0, "{} parts without a voxel", parts_.size());
}

SeedPoint SeedPoints::operator[](int64_t i) const {
  const std::span<const uint64_t> part = parts_[static_cast<size_t>(i % std::ssize(parts_))];
  Rng rng(seed_, Purpose::seeds, static_cast<uint64_t>(i));
  const auto voxel = static_cast<int64_t>(part[rng.next_u64() % part.size()]);
  SeedPoint point;
  point.volume = static_cast<size_t>(std::ranges::upper_bound(first_, voxel) - first_.begin() - 1);
  const int64_t place = voxel - first_[point.volume];
  const Voxels3& extents = extents_[point.volume];
  point.at = {place / (extents[1] * extents[2]), place / extents[2] % extents[1],
              place % extents[2]};
  return point;
}

}  // namespace tutti::data
