#pragma once
// Compiles a graph for a backend and a layout into a Plan.

#include "tutti/plan/plan.h"

namespace tutti::plan {

/// Compiles with exactly options.layout, a layout's name. Throws as compile() does.
Plan compile_with_layout(const graph::Graph& graph, const backend::Backend& backend,
                         const PlanOptions& options);

}  // namespace tutti::plan
