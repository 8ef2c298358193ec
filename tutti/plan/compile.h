#pragma once
// Compiles a graph for a backend and a layout into a Plan.

#include "tutti/plan/plan.h"

namespace tutti {

/// Compiles with exactly options.layout, a layout's name. Throws as compile() does.
Plan compile_with_layout(const Graph& graph, const Backend& backend, const PlanOptions& options);

}  // namespace tutti
