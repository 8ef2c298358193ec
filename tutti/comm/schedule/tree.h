#pragma once
// The one reduction tree. Sums over R replicas are always taken in the same binary tree over the
// replica index, however many ranks hold them, so the bits of a sum never depend on the machine:
//   tree(lo, hi) = the leaf lo                    when hi - lo = 1
//                = tree(lo, mid) + tree(mid, hi)  otherwise, with mid = lo + the largest
//                                                 power of two smaller than hi - lo
// R = 3 is (g0 + g1) + g2 and R = 5 is ((g0 + g1) + (g2 + g3)) + g4.
//
// A rank that owns replicas [lo, hi) adds them up into "parts": the maximal nodes of the tree that
// lie inside its range, at most 2 log2 R of them (SlotPlan adds them with few buffers). The
// exchange adds the rest of the tree over all parts (algorithm/tree_steps.h). Everything here is a
// pure function of numbers; nothing communicates.

#include <span>
#include <vector>

namespace tutti::comm {

/// Replicas lo, lo+1, ..., hi-1.
struct Range {
  int lo = 0;
  int hi = 0;
  int size() const { return hi - lo; }
  bool operator==(const Range&) const = default;
};

/// Returns where tree(node) splits; node.size() >= 2.
int split_point(Range node);

/// Returns whether `range` is a node of tree(0, replicas).
bool is_node(int replicas, Range range);

/// Returns the maximal nodes of tree(0, replicas) that tile `owned`, from left to right.
std::vector<Range> maximal_subtrees(int replicas, Range owned);

/// Distributes replicas over ranks contiguously and evenly: entry p is the first replica of rank p,
/// entry `ranks` is `replicas`. Sizes differ by at most one, larger ones first. Needs 1 <= ranks <=
/// replicas.
std::vector<int> first_replicas(int replicas, int ranks);

/// Returns the parts of all ranks in order: the leaves over which the exchange sums.
std::vector<Range> all_parts(int replicas, std::span<const int> first);

/// Lets one rank that runs its replicas one after another add them up with few buffers ("slots"),
/// as a binary counter does: replica i writes slot `slot`, then `adds` are done in order (into +=
/// from). Afterwards slot k holds parts[k].
struct SlotPlan {
  struct Add {
    int into = 0;
    int from = 0;
  };
  struct Replica {
    int slot = 0;
    std::vector<Add> adds;
  };
  std::vector<Replica> replicas;  ///< by local index
  std::vector<Range>
      parts;      ///< contents of slots 0, 1, ... at the end: maximal_subtrees of the range
  int slots = 0;  ///< buffers needed, at most log2(replicas) + 2
};
SlotPlan plan_slots(int replicas, Range owned);

}  // namespace tutti::comm
