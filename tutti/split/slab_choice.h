#pragma once
// Decides which layers are cut into how many slabs. Private to split.

#include <functional>
#include <map>
#include <optional>
#include <vector>

#include "tutti/split/split.h"

namespace tutti::split {

/// The input rows that a node reads to make some rows of its results.
struct RowReach {
  graph::OpPtr op;  ///< null: the node's own op
  float padding = 0;
  struct Input {
    int dim = -1;  ///< -1: unbatched
    std::vector<graph::Rows> windows;
  };
  std::vector<Input> in;
};

/// Returns how `op` with inputs of these types makes the windows of its results along an axis.
/// Nothing if it does not work by rows, or needs different ops or heights for them.
std::optional<RowReach> reach_of(const graph::Op& op, std::span<const graph::ValueType> types,
                                 int axis, const std::vector<graph::Rows>& windows);

/// Cuts `rows` into equal windows.
std::vector<graph::Rows> cut_rows(graph::Rows rows, int64_t count);

std::vector<graph::ValueType> types_in(const graph::Graph& graph, const graph::Node& node);

/// Returns the number of rows along an axis by which a node's work is divided: rows of its results,
/// or of its first input if it only makes sums; 0: none.
int64_t rows_of(const graph::Graph& graph, const graph::Node& node, int axis);

/// The choice is the same on all ranks that hold the same rows of axis 0.
class SlabChoice {
 public:
  SlabChoice(const graph::Graph& graph, const SplitSettings& settings);
  int64_t slabs_of(int node) const {
    return region_of_[static_cast<size_t>(node)] < 0 ? 1 : regions_.at(root_of(node)).slabs;
  }
  bool none() const;

 private:
  /// Nodes whose values are cut in the same way.
  struct Region {
    std::vector<int> nodes;
    int64_t slabs = 1;
  };
  const graph::Node& node(int n) const { return graph_.nodes()[static_cast<size_t>(n)]; }
  graph::Rows own_rows(int n) const;
  std::optional<RowReach> reach(int n, int64_t slabs) const;
  /// Returns the most slabs in which the node's results can be made.
  int64_t most_slabs(int n) const;
  double share_of(graph::Value v) const;
  void find_regions();
  int root_of(int n) const {
    while (region_of_[static_cast<size_t>(n)] != n) n = region_of_[static_cast<size_t>(n)];
    return n;
  }
  int64_t slabs_for(const Region& region) const;
  int64_t uneven_slabs(int64_t rows, const std::function<bool(int64_t)>& possible) const;
  bool pays(const Region& region, int64_t slabs) const;
  double largest_layer(const Region& region) const;

  const graph::Graph& graph_;
  const SplitSettings settings_;
  int64_t batch_ = 1;
  std::vector<int> region_of_;  // by node: another of its region, itself for the root; -1: none
  std::map<int, Region> regions_;
};

}  // namespace tutti::split
