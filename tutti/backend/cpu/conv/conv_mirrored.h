#pragma once
// The gradient of a convolution's data as a convolution forward: where the stride is 1, dx is dy
// convolved with the weights whose windows are turned about their centres and whose inputs and
// outputs have changed places. oneDNN's brgemm kernels, faster than its others, go forward alone.

#include <vector>

#include "tutti/backend/backend.h"

namespace tutti {

/// Appends one candidate per brgemm kernel, "mirrored NAME", if the request is a ConvBackwardData
/// of stride 1 without groups whose padding is less than its window. It asks for weights in a
/// mirrored layout, which they are packed in once a step.
void append_mirrored_conv_candidates(const KernelRequest& request,
                                     std::vector<KernelCandidate>& candidates);

}  // namespace tutti
