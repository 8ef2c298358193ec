#pragma once
// The pass behind split_samples(): goes through the nodes of a forward graph and makes the nodes of
// one part. Private to split.

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "tutti/ops/rows.h"
#include "tutti/split/slab_choice.h"
#include "tutti/split/split.h"

namespace tutti {

inline constexpr int kRowsDim = 2;  // the dimension of results with the rows of axis 0

/// A value of the old graph as this rank has it.
struct Held {
  Value value;
  int64_t slabs = 1;    ///< along axis 0
  bool shared = false;  ///< it has only the rows of its part
};

/// The part of an input that a node reads: windows along axis 0, one window along axis 1.
struct Wanted {
  int dim = -1;  ///< dimension of axis 0
  std::vector<Rows> windows;
  Rows across;  ///< along axis 1, if that is shared
  float padding = 0;
};

/// A node as one part computes it.
struct PartNode {
  OpPtr op;  ///< null: the node's own op
  std::vector<Wanted> in;
};

class Splitter {
 public:
  Splitter(const Graph& old, const SplitSettings& settings, const SlabChoice& slabs)
      : old_(old), grid_(settings.grid), whole_outputs_(settings.whole_outputs), slabs_(slabs) {}
  Rewritten build();

 private:
  std::optional<PartNode> node_of_part(const Node& n, int part, int64_t slabs) const;
  bool is_shared(const Node& n) const;
  Rows rows_of_part(Value v, int dim, int part, int axis) const {
    return held(v).shared ? grid_.rows(old_.shape(v)[dim], part, axis)
                          : Rows{0, old_.shape(v)[dim]};
  }
  const Held& held(Value v) const { return held_[static_cast<size_t>(v.id)]; }
  void copy_bound();
  void add_node(int n);
  OpPtr loss_of_part(const Node& n, bool shared) const;
  void add_shared_stats(const Node& n, Value y);
  Value weights_of_labels(const Node& n, Value labels);
  Value read(Value v, const std::vector<Wanted>& wanted_by_part);
  Value read_across(Value v, const std::vector<Wanted>& wanted_by_part);
  struct Exchanged {
    std::vector<Value> values;
    std::vector<Rows> rows;
  };
  Exchanged exchange(Value v, Value from, int64_t slabs, int dim, int axis,
                     const std::vector<Rows>& needed_by_part);
  Value gather(const Exchanged& others, Value from, RowCut cut, float fill);
  Value whole(Value v);
  std::vector<Wanted> all_rows(Value v) const;

  const Graph& old_;
  const PartGrid grid_;
  const bool whole_outputs_;
  const SlabChoice& slabs_;
  std::vector<Held> held_;
  std::map<std::string, Value> gathered_;
  Rewritten result_;
  int tag_ = 0;
  bool for_result_ = false;  // whether exchanges made now are for results
};

}  // namespace tutti
