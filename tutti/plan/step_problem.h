#pragma once
// Describes the problem that a step poses, before it has a kernel.

#include "tutti/graph/per_value.h"
#include "tutti/plan/plan.h"

namespace tutti::plan {

/// Returns node `n` as a step without kernel and places: operands lie as `descs` says; batched ones
/// are one tile of `band` (null: the node belongs to the update, which has no tiles). A kernel may
/// choose how it reads parameters.
Step step_of(const graph::Graph& graph, const graph::PerValue<TensorDesc>& descs, int n,
             const PlanBand* band);

/// Returns the samples of the step's tile; 0: it has none.
int64_t tile_of(const Step& step);

}  // namespace tutti::plan
