#pragma once
// Convolutions whose result is plain while their input is not, as where a network ends in logits of
// a few channels: a kernel for channels last writes into the workspace, and its result is turned.
// oneDNN has reference loops alone for such a pair of layouts, hundreds of times as slow.

#include <vector>

#include "tutti/backend/backend.h"

namespace tutti {

/// Appends one candidate per implementation with channels last but reference loops, "NAME, turned",
/// if the request is a Conv or a ConvBackwardData with a plain result from an input that is not.
void append_turned_conv_candidates(const KernelRequest& request,
                                   std::vector<KernelCandidate>& candidates);

}  // namespace tutti
