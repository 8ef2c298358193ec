#pragma once
// Choosing between whole compilations by running them.

#include "tutti/plan/plan.h"

namespace tutti {

/// Compiles with exactly options.layout, a layout's name.
Plan compile_with_layout(const Graph& graph, const Backend& backend, const PlanOptions& options);

/// Seconds of one pass over all bands with random operands: the best of `runs`, after one to warm up.
double time_plan(const Plan& plan, const Backend& backend, int runs);

}  // namespace tutti
