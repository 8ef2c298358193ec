#pragma once
// cpu:winograd: convolutions of channels-last tensors with 3 x 3 or 3 x 3 x 3 taps at stride 1,
// ungrouped, any dilation and padding, as fewer multiplications (winograd.h): forward, of gradients
// of data and of weights.

#include "tutti/backend/backend.h"

namespace tutti {

/// Appends what the kernels say of the request: accepted, or refused with a reason. Nothing for
/// other ops.
void append_winograd_candidate(const KernelRequest& request,
                               std::vector<KernelCandidate>& candidates);

}  // namespace tutti
