#include "tutti/train/infer/flood_fill.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "tutti/base/error.h"

namespace tutti::train {
namespace {

using VoxelPlace = std::array<int64_t, 3>;
constexpr VoxelPlace kSides{14, 20, 40};

size_t voxel(int64_t z, int64_t y, int64_t x) {
  return static_cast<size_t>((z * kSides[1] + y) * kSides[2] + x);
}

/// Two bars along x, 1 inside and 0 outside, with a plane of 0 between them.
std::vector<float> bars() {
  std::vector<float> image(static_cast<size_t>(kSides[0] * kSides[1] * kSides[2]), 0.0f);
  for (int64_t z = 1; z < 13; ++z)
    for (int64_t y = 1; y < 19; ++y)
      for (int64_t x = 1; x < 39; ++x)
        if (y != 9 && y != 10) image[voxel(z, y, x)] = 1;
  return image;
}

/// Acts as a perfect network: returns the bright voxels connected to the known part of the object.
class Perfect {
 public:
  explicit Perfect(const VoxelPlace& fov) : fov_(fov) {}
  const float* operator()(const float* image, const float* logits) {
    const int64_t n = fov_[0] * fov_[1] * fov_[2];
    out_.assign(static_cast<size_t>(n), -5.0f);
    for (bool grows = true; grows;) {
      grows = false;
      for (int64_t i = 0; i < n; ++i) {
        if (image[i] == 0 || out_[static_cast<size_t>(i)] > 0) continue;
        const VoxelPlace at{i / (fov_[1] * fov_[2]), i / fov_[2] % fov_[1], i % fov_[2]};
        if (logits[i] > 0 || next_to_own(at)) {
          out_[static_cast<size_t>(i)] = 6 - 0.1f * distance_from_middle(at);
          grows = true;
        }
      }
    }
    return out_.data();
  }

 private:
  float distance_from_middle(const VoxelPlace& at) const {
    float squares = 0;
    for (size_t a = 0; a < 3; ++a) {
      const auto d = static_cast<float>(at[a] - fov_[a] / 2);
      squares += d * d;
    }
    return std::sqrt(squares);
  }
  bool next_to_own(const VoxelPlace& at) const {
    for (size_t a = 0; a < 3; ++a)
      for (const int64_t by : {-1, 1}) {
        VoxelPlace p = at;
        p[a] += by;
        if (p[a] >= 0 && p[a] < fov_[a] &&
            out_[static_cast<size_t>((p[0] * fov_[1] + p[1]) * fov_[2] + p[2])] > 0)
          return true;
      }
    return false;
  }
  VoxelPlace fov_;
  std::vector<float> out_;
};

TEST(FloodFill, FollowsEachObjectToItsEnd) {
  const std::vector<float> image = bars();
  const FillSpec spec{.fov = {5, 5, 7}, .deltas = {1, 2, 3}, .min_segment = 50};
  const std::vector<VoxelPlace> seeds = {{6, 4, 21}, {6, 4, 5}, {0, 0, 0}, {6, 14, 21}, {6, 9, 20}};
  const Filled filled = flood_fill(spec, {kSides, image}, seeds, Perfect(spec.fov));
  EXPECT_EQ(filled.counts.objects, 2);  // the second seed lies in the first object
  EXPECT_EQ(filled.counts.weak, 2);     // in the dark; one of them in the corner
  for (int64_t z = 0; z < kSides[0]; ++z)
    for (int64_t y = 0; y < kSides[1]; ++y)
      for (int64_t x = 0; x < kSides[2]; ++x)
        EXPECT_EQ(filled.objects[voxel(z, y, x)], image[voxel(z, y, x)] == 0 ? 0
                                                  : y < 9                    ? 1
                                                                             : 2)
            << z << " " << y << " " << x;
}

TEST(FloodFill, TakesNothingFromObjectsThatAreDone) {
  const std::vector<float> image(bars().size(), 1.0f);  // for a network that sees no border
  const FillSpec spec{.fov = {5, 5, 7}, .deltas = {1, 2, 3}, .min_segment = 1};
  int looks = 0;
  std::vector<float> y(175);
  const LookFunction once = [&](const float*, const float*) {
    // A part of the field of view that no side of a move's box reaches.
    for (int64_t i = 0; i < 175; ++i)
      y[static_cast<size_t>(i)] =
          i / 35 == 2 && std::abs(i / 7 % 5 - 2) < 2 && std::abs(i % 7 - 3) < 3 ? 3.0f : -3.0f;
    ++looks;
    return y.data();
  };
  const std::vector<VoxelPlace> seeds = {{6, 9, 20}, {6, 11, 20}};
  const Filled filled = flood_fill(spec, {kSides, image}, seeds, once);
  EXPECT_EQ(filled.counts.objects, 2);
  EXPECT_EQ(std::ranges::count(filled.objects, 1), 15);
  EXPECT_EQ(std::ranges::count(filled.objects, 2), 10);
  EXPECT_EQ(looks, filled.counts.looks);
}

TEST(FloodFill, WhatWasSettledDoesNotComeBack) {
  // A network that sees the border only from its start: the first look keeps y < 10 alone, and
  // every later one takes all that it sees.
  const std::vector<float> image(bars().size(), 1.0f);
  FillSpec spec{.fov = {5, 9, 7}, .deltas = {1, 2, 3}, .min_segment = 1};
  const auto voxels_of_first = [&](double settle_above) {
    spec.settle_above = settle_above;
    bool first = true;
    std::vector<float> y(5 * 9 * 7);
    const LookFunction look = [&](const float*, const float*) {
      for (size_t i = 0; i < y.size(); ++i) y[i] = first && i / 7 % 9 > 4 ? -3.0f : 3.0f;
      first = false;
      return y.data();
    };
    const std::vector<VoxelPlace> seeds = {{6, 9, 20}};
    const Filled filled = flood_fill(spec, {kSides, image}, seeds, look);
    return std::array{filled.objects[voxel(6, 8, 20)], filled.objects[voxel(6, 11, 20)]};
  };
  EXPECT_EQ(voxels_of_first(0.5), (std::array{1, 0}));
  EXPECT_EQ(voxels_of_first(-1), (std::array{1, 1}));
  EXPECT_EQ(voxels_of_first(1), (std::array{1, 1}));  // no look exceeds the whole field of view
}

TEST(FloodFill, PartsThatSeeEachOtherAreOneObject) {
  // There are no moves along x: each seed traces a part of its bar, and the second sees the first
  // one's end.
  const std::vector<float> image = bars();
  FillSpec spec{.fov = {5, 5, 9}, .deltas = {1, 2, 0}, .min_segment = 50};
  const std::vector<VoxelPlace> seeds = {{6, 4, 10}, {6, 4, 15}, {6, 14, 10}, {6, 4, 30}};
  const auto traced = [&](double join_above) {
    spec.join_above = join_above;
    const Filled filled = flood_fill(spec, {kSides, image}, seeds, Perfect(spec.fov));
    return std::pair(filled.counts.objects,
                     filled.objects[voxel(6, 4, 10)] == filled.objects[voxel(6, 4, 17)]);
  };
  EXPECT_EQ(traced(0.5), std::pair(int64_t{3}, true));  // the last one is too far away
  EXPECT_EQ(traced(-1), std::pair(int64_t{4}, false));
}

TEST(FloodFill, LeavesOutSmallObjects) {
  const std::vector<float> image = bars();
  const FillSpec spec{.fov = {5, 5, 7}, .deltas = {1, 2, 3}, .min_segment = 1000000};
  const std::vector<VoxelPlace> seeds = {{6, 4, 20}};
  const Filled filled = flood_fill(spec, {kSides, image}, seeds, Perfect(spec.fov));
  EXPECT_EQ(filled.counts.small, 1);
  EXPECT_EQ(std::ranges::count(filled.objects, 0), std::ssize(filled.objects));
  const FillSpec large{.fov = {15, 5, 7}, .deltas = {1, 2, 3}};
  EXPECT_THROW(flood_fill(large, {kSides, image}, seeds, Perfect(large.fov)), ConfigError);
}

TEST(FloodSeeds, LieInTheMiddleOfObjectsTheThickestFirst) {
  const std::vector<float> image = bars();
  const std::vector<VoxelPlace> peaks = distance_peaks({kSides, image});
  ASSERT_GE(peaks.size(), 2u);
  const VoxelPlace first = peaks.front();
  EXPECT_EQ(image[voxel(first[0], first[1], first[2])], 1.0f);
  EXPECT_TRUE(std::abs(first[1] - 5) <= 2 || std::abs(first[1] - 14) <= 2) << first[1];
  EXPECT_EQ(grid_points({4, 4, 9}, {2, 4, 0}).size(), 2u * 1 * 9);
}

}  // namespace
}  // namespace tutti::train
