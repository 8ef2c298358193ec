#pragma once
// The keys of [tracing]: values, and the rows that describe them (config_table.h).

#include <cstdint>
#include <vector>

#include "tutti/config/config_words.h"

namespace tutti::config {

struct TracingSection {
  std::vector<int64_t> fov{33, 33, 33};  ///< voxels along z, y, x
  std::vector<int64_t> deltas{8, 8, 8};  ///< voxels that a move covers along z, y, x
  double move_threshold = 0.9;
  int64_t min_object = 10000;  ///< voxels
  std::vector<double> partitions{0.025, 0.05, 0.075, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9};
  int64_t seeds = 0;  ///< per epoch; 0: one for each voxel at which an object may begin
  int64_t validation_seeds = 256;
  SeedPoints seed_points = SeedPoints::peaks;
  double segment_threshold = 0.6;
  double settle_above = 0.005;
  double join_above = 0.5;
  int64_t min_segment = 1000;  ///< voxels

  template <class Keys>
  static void keys(Keys& t) {
    using S = TracingSection;
    t.rest_only_with("data.dataset", {"neurons"});

    t.key(&S::fov, "fov", "Field of view of the network: voxels along z, y and x, odd")
        .between(1, 1023);
    t.key(&S::deltas, "deltas", "How far a move of the field of view goes along z, y and x")
        .between(0, 511);
    t.key(&S::move_threshold, "move_threshold",
          "The field of view moves to where the probability is at least this")
        .between(0.01, 0.99);
    t.key(&S::min_object, "min_object",
          "Training begins only in objects of at least so many voxels")
        .at_least(1);
    t.key(&S::partitions, "partitions",
          "Bounds between parts of the voxels to begin at, by the fraction of their surroundings "
          "that is of their object; training takes as many of each part")
        .between(0, 1);
    t.key(&S::seeds, "seeds",
          "Seeds of the training set, drawn once with data.split_seed; an epoch has as many fields "
          "of view. 0: as many as there are voxels to begin at")
        .between(0, 4294967295);
    t.key(&S::validation_seeds, "validation_seeds",
          "Seeds of the validation and of the test set, likewise")
        .between(1, 4294967295);
    t.key(&S::seed_points, "seed_points",
          "Where `tutti infer` begins objects: peaks of the distance from edges, the farthest "
          "first; or a grid of the extents of tracing.deltas")
        .may_change();
    t.key(&S::segment_threshold, "segment_threshold",
          "Voxels of at least this probability belong to the object, in `tutti infer`")
        .between(0.01, 0.99)
        .may_change();
    t.key(&S::settle_above, "settle_above",
          "Once more than this part of a field of view reaches move_threshold, voxels that an "
          "earlier look gave less than one half do not come back to the object, in `tutti infer`. "
          "-1: they may")
        .between(-1, 1)
        .may_change();
    t.key(&S::join_above, "join_above",
          "An object that would have had more than this part of what it sees of an earlier one is "
          "the same object, in `tutti infer`. -1: never")
        .between(-1, 1)
        .may_change();
    t.key(&S::min_segment, "min_segment", "`tutti infer` leaves out smaller objects, in voxels")
        .at_least(1)
        .may_change();
  }
};

}  // namespace tutti::config
