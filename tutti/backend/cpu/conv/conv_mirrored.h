#pragma once
// Computes the gradient of a convolution's data as a forward convolution: where the stride is 1, dx
// is dy convolved with the weights whose windows are mirrored about their centres and whose inputs
// and outputs are exchanged. oneDNN's brgemm kernels, faster than its others, exist only forward.

#include <vector>

#include "tutti/backend/backend.h"

namespace tutti {

/// Appends one candidate per brgemm kernel, "mirrored NAME", if the request is a
/// ConvBackwardData of stride 1 without groups whose padding is less than its window. It requests
/// weights in a mirrored layout, into which they are packed once a step.
void append_mirrored_conv_candidates(const KernelRequest& request,
                                     std::vector<KernelCandidate>& candidates);

}  // namespace tutti
