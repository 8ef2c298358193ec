#pragma once
// How well a volume was cut into objects, against a truth. Numbers of objects do not matter, only
// which voxels are together. Voxels that the truth gives no object (0) are left out; those that the
// segmentation gives none count as one object of it.

#include <cstdint>
#include <span>

namespace tutti {

struct SegmentationScore {
  /// Variation of information, in bits (Meila 2003): H(segments | truth), what was split, and
  /// H(truth | segments), what was merged.
  double voi_split = 0, voi_merge = 0;
  /// Adapted Rand error (Arganda-Carreras et al. 2015): 1 - the F1 score of pairs of voxels,
  /// counted with themselves: precision of those together in the segmentation, recall of those in
  /// the truth.
  double adapted_rand = 0;
  /// Of objects: a segment finds an object where their intersection is more than half of their
  /// union, which is one pair at most.
  double f1 = 0;
  int64_t found = 0, objects = 0, segments = 0;  ///< of the truth, of the segmentation
  int64_t voxels = 0;                            ///< that count
};

/// Both of the same voxels. 0 voxels: all errors 0, f1 1.
SegmentationScore score_segmentation(std::span<const int32_t> segments,
                                     std::span<const uint32_t> truth);

}  // namespace tutti
