#pragma once
// cpu:winograd: convolutions of channels-last tensors with 3 x 3 or 3 x 3 x 3 taps at stride 1,
// ungrouped, any dilation and padding, with fewer multiplications (winograd.h): forward,
// gradients of data and gradients of weights.

#include "tutti/backend/backend.h"

namespace tutti {

/// Appends the kernels' answer to the request: accepted, or refused with a reason. Appends nothing
/// for other ops.
void append_winograd_candidate(const KernelRequest& request,
                               std::vector<KernelCandidate>& candidates);

}  // namespace tutti
