#pragma once
// Every kernel for ops of sequences: attention, norms of positions, tokens and their loss. They
// take channels last; for other layouts operands are copied around them.

#include <vector>

#include "tutti/backend/backend.h"

namespace tutti {

/// Appends candidates, possibly refusals; false if the op is none of these.
bool append_sequence_candidates(const KernelRequest& request,
                                std::vector<KernelCandidate>& candidates);

/// Those of ops/sequence/waves.h.
bool append_wave_candidates(const KernelRequest& request, std::vector<KernelCandidate>& candidates);
/// Those of ops/sequence/swiglu.h, of any layout that all operands share.
bool append_swiglu_candidates(const KernelRequest& request,
                              std::vector<KernelCandidate>& candidates);

}  // namespace tutti
