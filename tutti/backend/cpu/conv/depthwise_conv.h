#pragma once
// Depthwise convolutions, one filter a channel, in 2 or 3 dimensions with any stride, dilation and
// padding: oneDNN has fast ones only for weights in groups of 16, a layout that Layout cannot
// express. Here the lanes of a vector are channels, the weights lie as [kernel..., C] in f32, and
// every value is a sum over taps; bf16 is widened on load.

#include <vector>

#include "tutti/backend/backend.h"

namespace tutti {

/// Appends the candidate for a Conv, ConvBackwardData or ConvBackwardWeights with as many groups as
/// input and output channels, or a refusal; nothing for others. Returns whether it was accepted.
bool append_depthwise_conv_candidate(const KernelRequest& request,
                                     std::vector<KernelCandidate>& candidates);

}  // namespace tutti
