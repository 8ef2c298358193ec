#pragma once
// Convolutions whose result is plain while their input is not, as where a network ends in logits of
// a few channels: a kernel for channels last writes into the workspace, and its result is
// transposed. oneDNN has only reference loops for such a pair of layouts, which take hundreds of
// times as long.

#include <vector>

#include "tutti/backend/backend.h"

namespace tutti {

/// Appends one candidate, "NAME, turned", for each implementation with channels last that is not
/// reference loops, if the request is a Conv or a ConvBackwardData with a plain result from an
/// input that is not plain.
void append_turned_conv_candidates(const KernelRequest& request,
                                   std::vector<KernelCandidate>& candidates);

}  // namespace tutti
