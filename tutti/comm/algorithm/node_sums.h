#pragma once
// The sums that the ranks of a node can take before anything leaves it.
//
// In the order of comm/schedule/tree.h they can add up the maximal nodes of the tree inside their
// parts: these are several sums, unless the parts form one node of the tree. In any other order
// they add everything up to one sum.

#include <vector>

#include "tutti/comm/algorithm/nodes.h"
#include "tutti/comm/schedule/tree.h"

namespace tutti::comm {

/// One of the parts that a rank gives (Leaves); without leaves the rank has only this one.
struct Addend {
  int rank = 0;
  size_t number = 0;  ///< among the rank's parts
  Range node;         ///< its node of the tree
};

/// A sum taken on a node. `node` is its place in the tree over the sums of all nodes: the tree of
/// comm/schedule/tree.h, or, where no order is asked for, the tree over the node numbers.
struct NodeSum {
  Range node;
  bool single = false;  ///< there is one addend: nothing is added
};

/// Returns the parts of `rank`, as nodes of the tree.
std::vector<Range> parts_of(const Task& task, int rank);

/// Returns the parts of all ranks of a node, in the order of the tree.
std::vector<Addend> addends_of(const Task& task, const NodeTable& table, int node);

/// Returns the sums of a node, in the order of the tree.
std::vector<NodeSum> sums_of(const Task& task, const NodeTable& table, int node, bool ordered);

/// Returns whether each node's ranks are one node of the tree: then the order costs nothing.
bool nodes_follow_tree(const Task& task, const NodeTable& table);

/// Returns whether the ranks of some node can add anything in the order of the tree.
bool nodes_add_in_order(const Task& task, const NodeTable& table);

}  // namespace tutti::comm
