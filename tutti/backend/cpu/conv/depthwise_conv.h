#pragma once
// Depthwise convolutions, one filter a channel, in 2 or 3 dimensions with any stride, dilation and
// padding: oneDNN has fast ones only for weights in groups of 16, a layout that Layout cannot
// express. Here the lanes of a vector are channels, the weights lie as [kernel..., C] in f32, and
// every value is a sum over taps; bf16 is widened on load.

#include "tutti/backend/cpu/conv/conv.h"

namespace tutti::backend {

/// Returns the candidate for a convolution with as many groups as input and output channels, or a
/// refusal; nothing for others.
KernelCandidates depthwise_conv(const ConvRequest& request);

}  // namespace tutti::backend
