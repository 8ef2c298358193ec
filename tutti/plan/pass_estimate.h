#pragma once
// Estimates how long a pass over a plan's bands takes, from the times of its kernels.

#include "tutti/plan/plan.h"

namespace tutti::plan {

/// Returns the seconds of one pass: each different kernel is run once or a few times on a tile of
/// random data, and counted as often as a thread runs it. Makes neither the arena nor the executor,
/// so that the estimate takes a small part of a pass where passes take seconds. Caches are warmer
/// than in a pass.
double estimated_seconds(const Plan& plan, const backend::Backend& backend);

}  // namespace tutti::plan
