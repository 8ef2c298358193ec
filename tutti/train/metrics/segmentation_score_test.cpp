#include "tutti/train/metrics/segmentation_score.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

namespace tutti::train {
namespace {

TEST(SegmentationScore, OfTheTruthItselfIsPerfect) {
  const std::vector<uint32_t> truth = {1, 1, 2, 2, 0, 3};
  const std::vector<int32_t> same = {7, 7, 5, 5, 9, 1};
  const SegmentationScore s = score_segmentation(same, truth);
  EXPECT_EQ(s.voxels, 5);
  EXPECT_DOUBLE_EQ(s.voi_split, 0);
  EXPECT_DOUBLE_EQ(s.voi_merge, 0);
  EXPECT_DOUBLE_EQ(s.adapted_rand, 0);
  EXPECT_DOUBLE_EQ(s.f1, 1);
}

/// Computed by hand. Truth 1 1 1 1 2 2 2 2, segments 1 1 2 2 2 2 2 2: joint 2, 2, 4 of 8.
TEST(SegmentationScore, CountsSplitsAndMerges) {
  const std::vector<uint32_t> truth = {1, 1, 1, 1, 2, 2, 2, 2};
  const std::vector<int32_t> segments = {1, 1, 2, 2, 2, 2, 2, 2};
  const SegmentationScore s = score_segmentation(segments, truth);
  EXPECT_DOUBLE_EQ(s.voi_split, 0.5);  // H(joint) 1.5 - H(truth) 1
  EXPECT_NEAR(s.voi_merge, 1.5 - (0.25 * 2 + 0.75 * std::log2(4.0 / 3)), 1e-12);
  EXPECT_NEAR(s.adapted_rand, 1 - 2 * 24.0 / (32 + 40), 1e-12);
  EXPECT_EQ(s.found, 1);  // object 2: 4 of 6; object 1: 2 of 4 is not more than half
  EXPECT_DOUBLE_EQ(s.f1, 2 * 1 / 4.0);
}

TEST(SegmentationScore, TakesWhatWasNotFoundForOneObject) {
  const std::vector<uint32_t> truth = {1, 1, 2, 2};
  const std::vector<int32_t> nothing = {0, 0, 0, 0};
  const SegmentationScore s = score_segmentation(nothing, truth);
  EXPECT_DOUBLE_EQ(s.voi_split, 0);
  EXPECT_DOUBLE_EQ(s.voi_merge, 1);
  EXPECT_NEAR(s.adapted_rand, 1 - 2 * 8.0 / (8 + 16), 1e-12);
  EXPECT_DOUBLE_EQ(s.f1, 0);
  EXPECT_EQ(s.segments, 0);
}

TEST(SegmentationScore, OfNothingIsPerfect) {
  const std::vector<uint32_t> truth = {0, 0};
  const std::vector<int32_t> segments = {1, 2};
  const SegmentationScore s = score_segmentation(segments, truth);
  EXPECT_EQ(s.voxels, 0);
  EXPECT_DOUBLE_EQ(s.voi_split + s.voi_merge + s.adapted_rand, 0);
  EXPECT_DOUBLE_EQ(s.f1, 1);
}

}  // namespace
}  // namespace tutti::train
