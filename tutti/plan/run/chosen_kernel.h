#pragma once
// Finds the kernel that a plan has chosen for a step.

#include <cstdint>

#include "tutti/plan/plan.h"

namespace tutti::plan {

/// Returns the step's kernel for a tile of so many samples; 0: the step has no tiles. Throws
/// DeviceError if the backend does not offer it.
backend::KernelCandidate chosen_for(const backend::Backend& backend, const Step& step,
                                    int64_t samples);

}  // namespace tutti::plan
