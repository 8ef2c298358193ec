#pragma once
// Every kernel for a convolution, be it an op of the graph or the product inside a transposed
// convolution.

#include <vector>

#include "tutti/backend/backend.h"

namespace tutti {

/// Appends the candidates of conv.h, conv_mirrored.h, conv_widened.h and conv_turned.h; returns
/// false if the op is no convolution.
bool append_every_conv_candidate(const KernelRequest& request,
                                 std::vector<KernelCandidate>& candidates);

}  // namespace tutti
