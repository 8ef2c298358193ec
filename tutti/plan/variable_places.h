#pragma once
// Decides where the memory bound by the caller lies: parameters, gradients, statistics and states
// in their arenas, scalars, and inputs.

#include "tutti/graph/per_value.h"
#include "tutti/plan/bands.h"
#include "tutti/plan/plan.h"

namespace tutti::plan {

/// Lays out the arenas of a plan that trains. Parameters lie by bucket, and in a bucket in the
/// order in which their gradients are made; parameters that are not trained follow. Reads graph and
/// descs.
Variables size_arenas(const Plan& plan, const Schedule& schedule);

/// Returns the places of all values except results, whose entries stay empty. Reads graph, descs,
/// inputs and variables.
graph::PerValue<Place> variable_places(const Plan& plan);

}  // namespace tutti::plan
