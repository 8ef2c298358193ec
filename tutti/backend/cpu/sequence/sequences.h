#pragma once
// Every kernel for ops of sequences: attention, norms of positions, tokens and their loss. They use
// channels last; operands in other layouts are copied before and after.

#include <vector>

#include "tutti/backend/backend.h"

namespace tutti {

/// Appends candidates, possibly refusals; returns false for other ops.
bool append_sequence_candidates(const KernelRequest& request,
                                std::vector<KernelCandidate>& candidates);

/// Handles the ops of ops/sequence/waves.h.
bool append_wave_candidates(const KernelRequest& request, std::vector<KernelCandidate>& candidates);
/// Handles the ops of ops/sequence/swiglu.h, in any layout that all operands share.
bool append_swiglu_candidates(const KernelRequest& request,
                              std::vector<KernelCandidate>& candidates);

}  // namespace tutti
