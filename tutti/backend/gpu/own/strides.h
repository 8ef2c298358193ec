#pragma once
// The elements of operands as own kernels see them: a distance between neighbours by dimension, and
// nested loops over elements of several operands.

#include <algorithm>
#include <array>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "tutti/backend/backend.h"
#include "tutti/backend/gpu/kernels/loops.h"
#include "tutti/base/error.h"

namespace tutti::backend {

/// By dimension: the distance in memory between elements with neighbouring indices, in elements.
using Strides = std::vector<int64_t>;

/// Returns why an operand of the candidate has no strides; empty if all have.
std::string refusal_of_blocks(const KernelCandidate& candidate);
/// Requires a layout without blocks that is not mirrored.
Strides strides_of(const TensorDesc& desc);

inline FastDivisor divisor(int64_t value) { return {value, 1.0 / static_cast<double>(value)}; }

/// One of several loops over K operands.
template <size_t K>
struct StridedLoop {
  int64_t count = 1;
  std::array<int64_t, K> step{};
};

/// Returns the same elements in fewer loops, in the order of memory of operand 0. There is always
/// one at least.
template <size_t K>
std::vector<StridedLoop<K>> merged_loops(std::vector<StridedLoop<K>> loops) {
  std::erase_if(loops, [](const StridedLoop<K>& loop) { return loop.count == 1; });
  std::ranges::stable_sort(loops, [](const StridedLoop<K>& a, const StridedLoop<K>& b) {
    return a.step[0] > b.step[0];
  });
  std::vector<StridedLoop<K>> merged;
  for (const StridedLoop<K>& inner : loops) {
    bool follows = !merged.empty();
    for (size_t k = 0; follows && k < K; ++k)
      follows = merged.back().step[k] == inner.step[k] * inner.count;
    if (follows)
      merged.back() = {merged.back().count * inner.count, inner.step};
    else
      merged.push_back(inner);
  }
  if (merged.empty()) merged.emplace_back();
  return merged;
}

/// Returns loops as a kernel takes them.
template <size_t K>
Loops<static_cast<int>(K)> kernel_loops(const std::vector<StridedLoop<K>>& loops) {
  Loops<static_cast<int>(K)> made{};
  CHECK(!loops.empty() && loops.size() <= kMostLoops, "{} nested loops", loops.size());
  made.depth = static_cast<int32_t>(loops.size());
  for (size_t d = 0; d < loops.size(); ++d) {
    made.count[d] = divisor(loops[d].count);
    for (size_t k = 0; k < K; ++k) made.step[k][d] = loops[d].step[k];
  }
  return made;
}

/// Returns loops over all elements of operands of one shape.
template <size_t K>
std::vector<StridedLoop<K>> loops_over(const std::array<TensorDesc, K>& operands) {
  std::vector<StridedLoop<K>> loops(static_cast<size_t>(operands[0].shape.rank()));
  for (size_t k = 0; k < K; ++k) {
    const Strides strides = strides_of(operands[k]);
    for (size_t d = 0; d < loops.size(); ++d) {
      loops[d].count = operands[0].shape[static_cast<int>(d)];
      loops[d].step[k] = strides[d];
    }
  }
  return merged_loops(std::move(loops));
}

/// Returns the blocks that a kernel of this many threads needs for so many of them.
inline unsigned blocks_for(int64_t threads, int64_t block) {
  return static_cast<unsigned>((threads + block - 1) / block);
}

}  // namespace tutti::backend
