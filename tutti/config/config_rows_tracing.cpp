#include "tutti/config/config_table.h"

namespace tutti {

void write_tracing_rows(ConfigTableWriter& t) {
  using S = TracingSection;
  constexpr auto s = &RunConfig::tracing;
  const char* kDataset = "data.dataset";
  t.section("tracing", s,
            "Flood filling: how neurons are traced through a volume, in training and by `tutti "
            "infer`. See docs/workloads/neurons.md.");
  t.key(s, &S::fov, "fov", "Field of view of the network: voxels along z, y and x, odd")
      .between(1, 1023)
      .only_with(kDataset, {"neurons"});
  t.key(s, &S::deltas, "deltas", "How far a move of the field of view goes along z, y and x")
      .between(0, 511)
      .only_with(kDataset, {"neurons"});
  t.key(s, &S::move_threshold, "move_threshold",
        "The field of view moves to where the probability is at least this")
      .between(0.01, 0.99)
      .only_with(kDataset, {"neurons"});
  t.key(s, &S::min_object, "min_object",
        "Training begins only in objects of at least so many voxels")
      .at_least(1)
      .only_with(kDataset, {"neurons"});
  t.key(s, &S::partitions, "partitions",
        "Bounds between parts of the voxels to begin at, by the fraction of their surroundings "
        "that is of their object; training takes as many of each part")
      .between(0, 1)
      .only_with(kDataset, {"neurons"});
  t.key(s, &S::seeds, "seeds",
        "Seeds of the training set, drawn once with data.split_seed; an epoch has as many fields "
        "of view. 0: as many as there are voxels to begin at")
      .between(0, 4294967295)
      .only_with(kDataset, {"neurons"});
  t.key(s, &S::validation_seeds, "validation_seeds",
        "Seeds of the validation and of the test set, likewise")
      .between(1, 4294967295)
      .only_with(kDataset, {"neurons"});
  t.key(s, &S::seed_points, "seed_points",
        "Where `tutti infer` begins objects: peaks of the distance from edges, the farthest first; "
        "or a grid of the extents of tracing.deltas")
      .may_change()
      .only_with(kDataset, {"neurons"});
  t.key(s, &S::segment_threshold, "segment_threshold",
        "Voxels of at least this probability belong to the object, in `tutti infer`")
      .between(0.01, 0.99)
      .may_change()
      .only_with(kDataset, {"neurons"});
  t.key(
       s, &S::settle_above, "settle_above",
       "Once more than this part of a field of view reaches move_threshold, voxels that an "
       "earlier look gave less than one half do not come back to the object, in `tutti infer`. -1: "
       "they may")
      .between(-1, 1)
      .may_change()
      .only_with(kDataset, {"neurons"});
  t.key(
       s, &S::join_above, "join_above",
       "An object that would have had more than this part of what it sees of an earlier one is the "
       "same object, in `tutti infer`. -1: never")
      .between(-1, 1)
      .may_change()
      .only_with(kDataset, {"neurons"});
  t.key(s, &S::min_segment, "min_segment", "`tutti infer` leaves out smaller objects, in voxels")
      .at_least(1)
      .may_change()
      .only_with(kDataset, {"neurons"});
}

}  // namespace tutti
