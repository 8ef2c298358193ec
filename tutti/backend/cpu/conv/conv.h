#pragma once
// Convolution kernels for CPUs: oneDNN's implementations of Conv, ConvBackwardData and
// ConvBackwardWeights.

#include <vector>

#include "tutti/backend/backend.h"

namespace tutti {

/// Appends the candidates for a convolution request; returns false for other ops. Activations are
/// f32 or bf16, all the same, in the layouts of the request; weights have the same type and the
/// layout that the kernel names; bias and dw are f32.
bool append_conv_candidates(const KernelRequest& request, std::vector<KernelCandidate>& candidates);

}  // namespace tutti
