#pragma once
// Common code of the kernels of pooling over windows and over all positions.

#include <memory>
#include <string>
#include <vector>

#include "tutti/backend/cpu/kernel/generic.h"
#include "tutti/backend/cpu/kernel/sample.h"
#include "tutti/backend/cpu/simd/channel_walk.h"

namespace tutti {

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

/// Appends the kernel K of the operands' type, with its arguments.
template <template <class> class K, class... Args>
bool add_pooling(const KernelRequest& r, std::vector<KernelCandidate>& candidates, Args... args) {
  KernelCandidate c = candidate_for(r, "cpu:pool");
  c.refusal = refusal_of_pooling(r);
  if (!with_float_type(r.in[0].dtype, [&](auto type) {
        c.make = [r, args...] { return std::make_unique<K<decltype(type)>>(r, args...); };
      }))
    c.refusal = fmt::format("no pooling of {}", name_of(r.in[0].dtype));
  candidates.push_back(std::move(c));
  return true;
}

}  // namespace tutti
