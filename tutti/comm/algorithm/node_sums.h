#pragma once
// What the ranks of a node can add before anything leaves it.
//
// In the order of comm/schedule/tree.h they can add the maximal nodes of the tree inside what they
// have: several sums, where they are no single node of it. In any other order they add everything
// to one.

#include <vector>

#include "tutti/comm/algorithm/nodes.h"
#include "tutti/comm/schedule/tree.h"

namespace tutti::comm {

/// One of the parts that a rank gives (Leaves); without leaves it is the rank's only one.
struct Addend {
  int rank = 0;
  size_t number = 0;  ///< among the rank's parts
  Range node;         ///< of the tree
};

/// A sum of a node. `node` is its place in the tree over the sums of all nodes: of
/// comm/schedule/tree.h, or, where no order is asked for, of the tree over nodes.
struct NodeSum {
  Range node;
  bool single = false;  ///< of one addend: nothing is added
};

/// The parts of `rank`, as nodes of the tree.
std::vector<Range> parts_of(const Task& task, int rank);

/// The parts of all ranks of a node, in the order of the tree.
std::vector<Addend> addends_of(const Task& task, const NodeTable& table, int node);

/// The sums of a node, in the order of the tree.
std::vector<NodeSum> sums_of(const Task& task, const NodeTable& table, int node, bool ordered);

/// Whether each node's ranks are one node of the tree: then the order costs nothing.
bool nodes_follow_tree(const Task& task, const NodeTable& table);

/// Whether the ranks of some node can add anything in the order of the tree.
bool nodes_add_in_order(const Task& task, const NodeTable& table);

}  // namespace tutti::comm
