#pragma once
// The levels of comm/schedule/tree.h seen from one rank: the block of ranks to which it belongs,
// and the block with which that is merged.

#include <vector>

#include "tutti/comm/schedule/schedule.h"
#include "tutti/comm/schedule/tree.h"

namespace tutti::comm {

/// Merges two neighbouring nodes of the tree. The number of ranks in `left` is a power of two, and
/// at least as large as in `right`.
struct Merge {
  Range left, right;
  Range mine(int rank) const { return rank < left.hi ? left : right; }
  Range other(int rank) const { return rank < left.hi ? right : left; }
};

/// Returns the merges in which `rank` takes part, from its leaf to the root.
std::vector<Merge> merges_of(int rank, int ranks);

/// The exchange that gives every rank of a merge the data of the other side: a rank receives from
/// one rank, and sends to several where its own side is the smaller one.
struct TreePartners {
  int receive_from = 0;
  std::vector<int> send_to;
};
TreePartners partners_of(const Merge& merge, int rank);

/// Returns the joint part of a block of ranks; their parts are neighbours in the long vector.
Slice joint_part(const Task& task, Range ranks);

/// A leaf of the sum: its node of the tree, whose sum it already is, and where it lies.
struct TreeLeaf {
  Range node;
  Block block;
};

/// Adds to the last round of `builder` the sum of `leaves` in the order of the tree, into `to`. The
/// leaves, nodes of the tree, tile it from left to right. Inner nodes are kept in accumulators.
void add_tree(ScheduleBuilder& builder, const std::vector<TreeLeaf>& leaves, Block to);

}  // namespace tutti::comm
