#pragma once
// Ungrouped convolutions of channels-last tensors as products of matrices: a pixel's channels are a
// row, weights lie in panels of 16 outputs, and each tap is one more part of the sum. Any kernel,
// stride, dilation and padding, in 2 or 3 dimensions. f32; gradients of weights also in bf16 where
// TUTTI_MARCH has products of bf16 pairs (other bf16 ops use conv_widened.h).

#include <vector>

#include "tutti/backend/backend.h"

namespace tutti {

namespace matrix {
/// Returns the layout [K/16, kernel..., C, 16], or with `data` [C/16, kernel..., K, 16], for
/// weights with this rank.
Layout panels_layout(int rank, bool data);
}  // namespace matrix

/// Adds the candidate "cpu:matrix" for Conv, ConvBackwardData and ConvBackwardWeights, or its
/// refusal. Weights are [K/16, kernel..., C, 16], for the data gradient [C/16, kernel..., K, 16].
/// For convolutions of one tap also adds "cpu:product" (matrix_product.h), which reads the former
/// layout in both cases, and supports bf16.
void append_matrix_conv_candidate(const KernelRequest& request,
                                  std::vector<KernelCandidate>& candidates);

}  // namespace tutti
