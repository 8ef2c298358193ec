#pragma once
// The ranks of each node, and which of them work for the ranks of other nodes.

#include <span>
#include <vector>

#include "tutti/comm/schedule/schedule.h"

namespace tutti::comm {

/// The inverse of Task::node_of: from nodes to ranks.
class NodeTable {
 public:
  /// Puts all ranks on one node where the task has no table.
  explicit NodeTable(const Task& task);

  int ranks() const { return static_cast<int>(node_of_.size()); }
  int nodes() const { return static_cast<int>(first_.size()) - 1; }
  int node(int rank) const { return node_of_[static_cast<size_t>(rank)]; }
  /// Returns the ranks of a node, in rising order.
  std::span<const int> ranks_of(int node) const;
  int size(int node) const { return static_cast<int>(ranks_of(node).size()); }
  /// Returns whether all nodes have as many ranks as the first one.
  bool equal() const;
  /// Returns whether a node's ranks are contiguous.
  bool contiguous(int node) const;

 private:
  std::vector<int> node_of_;  // node of each rank
  std::vector<int> by_node_;  // ranks, sorted by node
  std::vector<int> first_;    // nodes + 1: where they begin in by_node_
};

/// Deals out the ranks of other nodes to the ranks of `node`, their workers there: in rising order,
/// so that the data of one worker lie together, and evenly both in elements of `blocks` (one for
/// each rank) and in number. The result has one entry for each rank of `node`, by its place there.
std::vector<std::vector<int>> dealt_on(const NodeTable& table, std::span<const Slice> blocks,
                                       int node);

/// Returns the worker of `rank` on each node, by dealt_on(); on its own node it is `rank` itself.
std::vector<int> workers_of(const NodeTable& table, std::span<const Slice> blocks, int rank);

/// Returns the blocks of `ranks` without empty ones; those that touch are joined.
std::vector<Slice> joined(std::span<const Slice> blocks, std::span<const int> ranks);

}  // namespace tutti::comm
