#pragma once
// bf16 convolutions computed in f32: a tile is widened into the workspace, convolved by an f32
// kernel with f32 weights, and the result narrowed. Both conversions stay in the core's cache, so
// on processors without fast bf16 arithmetic (vdpbf16ps at half rate, or none) this is faster than
// native bf16, and it rounds less. Measurement decides between it and the native candidates.

#include <vector>

#include "tutti/backend/backend.h"

namespace tutti {

/// Appends one candidate per f32 implementation, if the request is a bf16 convolution.
void append_widened_conv_candidates(const KernelRequest& request,
                                    std::vector<KernelCandidate>& candidates);

}  // namespace tutti
