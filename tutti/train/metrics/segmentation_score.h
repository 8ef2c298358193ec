#pragma once
// Compares a segmentation of a volume with the truth. Objects' numbers do not matter, only which
// voxels belong together. Voxels without an object in the truth (0) are left out; those without one
// in the segmentation count as one object of it.

#include <cstdint>
#include <span>

namespace tutti::train {

struct SegmentationScore {
  /// Variation of information, in bits (Meila 2003): H(segments | truth) measures splits, and
  /// H(truth | segments) measures merges.
  double voi_split = 0, voi_merge = 0;
  /// Adapted Rand error (Arganda-Carreras et al. 2015): 1 - the F1 score of pairs of voxels,
  /// including each with itself: precision among pairs together in the segmentation, recall among
  /// pairs together in the truth.
  double adapted_rand = 0;
  /// F1 score over objects: a segment finds an object if their intersection is more than half of
  /// their union, which holds for at most one pair.
  double f1 = 0;
  int64_t found = 0, objects = 0, segments = 0;  ///< objects are the truth's
  int64_t voxels = 0;                            ///< number of voxels counted
};

/// Both cover the same voxels. Without counted voxels all errors are 0 and f1 is 1.
SegmentationScore score_segmentation(std::span<const int32_t> segments,
                                     std::span<const uint32_t> truth);

}  // namespace tutti::train
