#pragma once
// Reorder for CPUs: converts any layout and type to any other.

#include <vector>

#include "tutti/backend/backend.h"

namespace tutti {

/// Appends the candidate for a Reorder; returns false for other ops. Padding of the output's layout
/// is written as zeros. Walk::whole: parts share the work.
bool append_reorder_candidates(const KernelRequest& request,
                               std::vector<KernelCandidate>& candidates);

}  // namespace tutti
