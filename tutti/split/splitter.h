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

namespace tutti::split {

inline constexpr int kRowsDim = 2;  // the dimension of results with the rows of axis 0

/// A value of the old graph as this rank has it.
struct Held {
  graph::Value value;
  int64_t slabs = 1;    ///< along axis 0
  bool shared = false;  ///< it has only the rows of its part
};

/// The part of an input that a node reads: windows along axis 0, one window along axis 1.
struct Wanted {
  int dim = -1;  ///< dimension of axis 0
  std::vector<graph::Rows> windows;
  graph::Rows across;  ///< along axis 1, if that is shared
  float padding = 0;
};

/// A node as one part computes it.
struct PartNode {
  graph::OpPtr op;  ///< null: the node's own op
  std::vector<Wanted> in;
};

class Splitter {
 public:
  Splitter(const graph::Graph& old, const SplitSettings& settings, const SlabChoice& slabs)
      : old_(old), grid_(settings.grid), whole_outputs_(settings.whole_outputs), slabs_(slabs) {}
  ops::Rewritten build();

 private:
  std::optional<PartNode> node_of_part(const graph::Node& n, int part, int64_t slabs) const;
  bool is_shared(const graph::Node& n) const;
  graph::Rows rows_of_part(graph::Value v, int dim, int part, int axis) const {
    return held(v).shared ? grid_.rows(old_.shape(v)[dim], part, axis)
                          : graph::Rows{0, old_.shape(v)[dim]};
  }
  const Held& held(graph::Value v) const { return held_[static_cast<size_t>(v.id)]; }
  void copy_bound();
  void add_node(int n);
  graph::OpPtr loss_of_part(const graph::Node& n, bool shared) const;
  void add_shared_stats(const graph::Node& n, graph::Value y);
  graph::Value weights_of_labels(const graph::Node& n, graph::Value labels);
  graph::Value read(graph::Value v, const std::vector<Wanted>& wanted_by_part);
  graph::Value read_across(graph::Value v, const std::vector<Wanted>& wanted_by_part);
  struct Exchanged {
    std::vector<graph::Value> values;
    std::vector<graph::Rows> rows;
  };
  Exchanged exchange(graph::Value v, graph::Value from, int64_t slabs, int dim, int axis,
                     const std::vector<graph::Rows>& needed_by_part);
  graph::Value gather(const Exchanged& others, graph::Value from, ops::RowCut cut, float fill);
  graph::Value whole(graph::Value v);
  std::vector<Wanted> all_rows(graph::Value v) const;

  const graph::Graph& old_;
  const PartGrid grid_;
  const bool whole_outputs_;
  const SlabChoice& slabs_;
  std::vector<Held> held_;
  std::map<std::string, graph::Value> gathered_;
  ops::Rewritten result_;
  int tag_ = 0;
  bool for_result_ = false;  // whether exchanges made now are for results
};

}  // namespace tutti::split
