#pragma once
// Convolutions to fewer than 8 channels, as where a network ends in a map or in logits: a result is
// a few dot products along the channels of the pixels it reads. Vectors of results, which other
// kernels use, would be mostly empty.

#include <vector>

#include "tutti/backend/backend.h"

namespace tutti {

/// Appends one candidate, "cpu:narrow", or its refusal, if the request is an ungrouped Conv or
/// ConvBackwardData.
void append_narrow_conv_candidate(const KernelRequest& request,
                                  std::vector<KernelCandidate>& candidates);

}  // namespace tutti
