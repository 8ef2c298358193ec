#pragma once
// Choosing between whole compilations by running them.

#include "tutti/plan/plan.h"

namespace tutti {

/// Seconds of one pass over all bands with random operands: the best of `runs`, after one to warm
/// up. Ends with the first pass that takes longer than `give_up_seconds` or half a second.
double time_plan(const Plan& plan, const Backend& backend, int runs, double give_up_seconds);

}  // namespace tutti
