#pragma once
// The levels of comm/schedule/tree.h seen from one rank: which block of ranks it belongs to, and
// with which block that is merged.

#include <vector>

#include "tutti/comm/schedule/schedule.h"
#include "tutti/comm/schedule/tree.h"

namespace tutti::comm {

/// Two neighbouring nodes of the tree become one. Left always has a power of two of ranks, and at
/// least as many as right.
struct Merge {
  Range left, right;
  Range mine(int rank) const { return rank < left.hi ? left : right; }
  Range other(int rank) const { return rank < left.hi ? right : left; }
};

/// The merges that `rank` takes part in, from its leaf to the root.
std::vector<Merge> merges_of(int rank, int ranks);

/// The exchange in which every rank of a merge learns what any rank of the other side knows: rank
/// receives from one, and sends to several where its own side is the smaller one.
struct TreePartners {
  int receive_from = 0;
  std::vector<int> send_to;
};
TreePartners partners_of(const Merge& merge, int rank);

/// The parts of a block of ranks: neighbours in the long vector.
Slice joint_part(const Task& task, Range ranks);

/// A leaf of the sum: what it is the sum of already, and where it lies.
struct TreeLeaf {
  Range node;
  Block block;
};

/// Adds to the last round of `builder` the sum of `leaves` in the order of the tree, into `to`.
/// They tile the tree from left to right, each one of its nodes. Inner nodes are kept in
/// accumulators.
void add_tree(ScheduleBuilder& builder, const std::vector<TreeLeaf>& leaves, Block to);

}  // namespace tutti::comm
