#pragma once
// Sums whose bits do not depend on which rank or thread computes which part. The summands are cut
// into blocks of kSumBlock elements; one thread of one rank sums a block, and the blocks' sums are
// added in one fixed tree:
//   tree(lo, hi) = block lo                       when hi - lo = 1
//                = tree(lo, mid) + tree(mid, hi)  otherwise, with mid = lo + the largest power
//                                                 of two smaller than hi - lo
// It is the tree in which gradients are summed over replicas (comm/schedule/tree.h).

#include <bit>
#include <cstdint>
#include <type_traits>

namespace tutti {

/// Elements of a block. A page of floats: small enough to balance shards by, large enough that
/// block sums take 1/512 of the space of the summands.
inline constexpr int64_t kSumBlock = 1024;

/// Returns the number of blocks that cover `elements`; the last one may be short.
constexpr int64_t sum_blocks(int64_t elements) { return (elements + kSumBlock - 1) / kSumBlock; }

/// Returns where tree(lo, hi) splits; hi - lo >= 2.
constexpr int64_t tree_split(int64_t lo, int64_t hi) {
  return lo + static_cast<int64_t>(std::bit_floor(static_cast<uint64_t>(hi - lo - 1)));
}

/// Returns the tree's sum of leaf(lo) ... leaf(hi - 1), in the type that leaf returns; Sum() if
/// there are none. A pure function of the leaves.
template <class Leaf, class Sum = std::invoke_result_t<const Leaf&, int64_t>>
Sum tree_sum(int64_t lo, int64_t hi, const Leaf& leaf) {
  if (hi <= lo) return Sum();
  if (hi - lo == 1) return leaf(lo);
  const int64_t mid = tree_split(lo, hi);
  return tree_sum(lo, mid, leaf) + tree_sum(mid, hi, leaf);
}

}  // namespace tutti
