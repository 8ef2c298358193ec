#pragma once
// Convolution kernels for CPUs: what oneDNN offers for Conv, ConvBackwardData and
// ConvBackwardWeights.

#include <vector>

#include "tutti/backend/backend.h"

namespace tutti {

/// Appends the candidates for a convolution request; returns false if the op is no convolution.
/// Activations f32 or bf16 (all alike), in the layouts of the request; weights of the same type in
/// the layout that the kernel names; bias and dw f32.
bool append_conv_candidates(const KernelRequest& request, std::vector<KernelCandidate>& candidates);

}  // namespace tutti
