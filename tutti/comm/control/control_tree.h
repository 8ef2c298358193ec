#pragma once
// ControlTree: the binomial tree that control messages take, between processes. It is a pure
// function of numbers; nothing communicates.
//
// With v = (rank - root) mod P, the parent of v is v without its lowest set bit. So the subtree of
// v is a range of ranks, and folding the children in their order adds as tree(0, P) of
// comm/schedule/tree.h.

#include <vector>

namespace tutti::comm {

/// One rank's place in the tree. A way up or down costs a rank at most log2 P + 1 messages.
struct ControlTree {
  ControlTree(int rank, int ranks, int root = 0);

  int parent = -1;            ///< -1 at the root
  std::vector<int> children;  ///< the smallest subtree first
  std::vector<int> sizes;     ///< ranks in the subtree of each child
  int size = 1;               ///< ranks in the subtree of this rank, itself among them
};

}  // namespace tutti::comm
