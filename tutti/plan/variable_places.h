#pragma once
// Where what the caller binds lies: parameters, gradients, statistics and states in their arenas,
// scalars, and inputs.

#include "tutti/graph/per_value.h"
#include "tutti/plan/bands.h"
#include "tutti/plan/plan.h"

namespace tutti {

/// The arenas of a plan that trains. Parameters lie by bucket, and in a bucket in the order in
/// which their gradients are made; then those that are not trained. Reads graph and descs.
Variables size_arenas(const Plan& plan, const Schedule& schedule);

/// Places of all values but results, whose entries stay empty. Reads graph, descs, inputs and
/// variables.
PerValue<Place> variable_places(const Plan& plan);

}  // namespace tutti
