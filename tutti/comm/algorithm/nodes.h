#pragma once
// Which ranks are on which node, and who of a node works for the ranks of the others.

#include <span>
#include <vector>

#include "tutti/comm/schedule/schedule.h"

namespace tutti::comm {

/// Task::node_of the other way round.
class NodeTable {
 public:
  /// Without a table all ranks are on one node.
  explicit NodeTable(const Task& task);

  int ranks() const { return static_cast<int>(node_of_.size()); }
  int nodes() const { return static_cast<int>(first_.size()) - 1; }
  int node(int rank) const { return node_of_[static_cast<size_t>(rank)]; }
  /// Of a node, in rising order.
  std::span<const int> ranks_of(int node) const;
  int size(int node) const { return static_cast<int>(ranks_of(node).size()); }
  /// Whether all nodes have as many ranks as the first one.
  bool equal() const;
  /// Whether a node's ranks are neighbours.
  bool contiguous(int node) const;

 private:
  std::vector<int> node_of_;  // of each rank
  std::vector<int> by_node_;  // ranks, those of node 0 first
  std::vector<int> first_;    // nodes + 1: where they begin in by_node_
};

/// The ranks of other nodes are dealt out to the ranks of a node, their workers there: in rising
/// order, so that what one worker gets lies together, and evenly in elements of `blocks` (one a
/// rank) and in number alike. The entry of each rank of `node`, by its place there.
std::vector<std::vector<int>> dealt_on(const NodeTable& table, std::span<const Slice> blocks,
                                       int node);

/// Who works for `rank` on each node, by dealt_on(); on its own node it does so itself.
std::vector<int> workers_of(const NodeTable& table, std::span<const Slice> blocks, int rank);

/// The blocks of `ranks`, those that touch made one, without empty ones.
std::vector<Slice> joined(std::span<const Slice> blocks, std::span<const int> ranks);

}  // namespace tutti::comm
