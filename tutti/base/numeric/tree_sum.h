#pragma once
// Sums whose bits do not depend on who computes which part. What is summed is cut into blocks of
// kSumBlock elements; a block's sum is taken by one thread of one rank, and the blocks' sums are
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
/// block sums are 1/512 of what they sum.
inline constexpr int64_t kSumBlock = 1024;

/// Blocks that cover `elements`; the last one may be short.
constexpr int64_t sum_blocks(int64_t elements) { return (elements + kSumBlock - 1) / kSumBlock; }

/// Where tree(lo, hi) splits; hi - lo >= 2.
constexpr int64_t tree_split(int64_t lo, int64_t hi) {
  return lo + static_cast<int64_t>(std::bit_floor(static_cast<uint64_t>(hi - lo - 1)));
}

/// The tree's sum of leaf(lo) ... leaf(hi - 1), in the type that they return; Sum() when there are
/// none. A pure function of the leaves.
template <class Leaf, class Sum = std::invoke_result_t<const Leaf&, int64_t>>
Sum tree_sum(int64_t lo, int64_t hi, const Leaf& leaf) {
  if (hi <= lo) return Sum();
  if (hi - lo == 1) return leaf(lo);
  const int64_t mid = tree_split(lo, hi);
  return tree_sum(lo, mid, leaf) + tree_sum(mid, hi, leaf);
}

}  // namespace tutti
