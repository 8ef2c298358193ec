#pragma once
// Cuts the update into stages around its exchanges.

#include <vector>

#include "tutti/plan/bands.h"
#include "tutti/plan/plan.h"

namespace tutti::plan {

/// Returns the stages in the order in which they are waited for: the most urgent first, each behind
/// those it follows. Reads graph, places, exchanges, buckets, updates and packs, and the number of
/// bands.
std::vector<PlanStage> make_stages(const Plan& plan, const Schedule& schedule);

}  // namespace tutti::plan
