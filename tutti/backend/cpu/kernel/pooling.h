#pragma once
// Common code of the kernels of pooling over windows and over all positions.

#include <memory>
#include <string>
#include <vector>

#include "tutti/backend/cpu/kernel/kernel_table.h"
#include "tutti/backend/cpu/kernel/sample.h"
#include "tutti/backend/cpu/simd/channel_walk.h"

namespace tutti::backend {

/// Calls f(lane offset, lanes) for the vectors of one block of channels.
template <class F>
void for_each_channel_vector(int64_t block, F f) {
  int64_t l = 0;
  for (; l + simd::kLanes <= block; l += simd::kLanes) f(l, simd::AllLanes{});
  if (l < block) f(l, simd::SomeLanes{static_cast<int>(block - l)});
}

/// Returns a refusal unless all operands with positions have one layout of the form [N, C/b,
/// positions, b]; empty: they have.
std::string refusal_of_pooling(const KernelRequest& r);

/// Returns the kernel K of the operands' type, with its arguments.
template <template <class> class K, class... Args>
KernelCandidate pooling_kernel(const KernelRequest& r, const Args&... args) {
  KernelCandidate c = candidate_for(r, "cpu:pool");
  c.refusal = refusal_of_pooling(r);
  choose_kernel<K>(c, r.in[0].dtype, "pooling", r, args...);
  return c;
}

}  // namespace tutti::backend
