#pragma once
// 3x3 convolutions of stride 1 and padding 1 in blocks of 16 channels, written here for AVX-512: a
// row's pixels are held in registers in equal shares, while oneDNN cuts 32 pixels into 28 + 4, and
// the 4 wait for each other. Weight gradients are added to the thread's accumulator at once. bf16
// operands are widened first, weights stay f32: faster than bf16 arithmetic on machines whose bf16
// instructions run at half the rate.

#include <vector>

#include "tutti/backend/backend.h"

namespace tutti {

/// Appends the candidate for a Conv, ConvBackwardData or ConvBackwardWeights in layout b16c with
/// 3x3 taps, or a refusal; nothing for other ops. Returns whether it is likely the fastest.
bool append_direct_conv_candidate(const KernelRequest& request,
                                  std::vector<KernelCandidate>& candidates);

}  // namespace tutti
