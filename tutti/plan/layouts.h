#pragma once
// Layouts: how each value of the graph lies in memory.

#include <string>

#include "tutti/graph/per_value.h"
#include "tutti/plan/bands.h"
#include "tutti/plan/kernel_choice.h"
#include "tutti/plan/plan.h"

namespace tutti {

/// The results that a gradient grows from in its own memory (Op::in_place), each of which nobody
/// else reads, the last one made first at the front: lookups add one after the other to what an
/// output layer has made.
std::vector<Value> taken_over_by(const Graph& graph, Value gradient);

/// Activations in the layout of this name where the backend offers it for their shape. All other
/// values are plain, outputs too: the caller reads them.
PerValue<TensorDesc> lay_out_activations(const Graph& graph, const Backend& backend,
                                         const std::string& layout);

/// The plan's descs with parameters, gradients and states as options.variables has them. Without
/// those a parameter takes the layout in which the backward pass makes its gradient, so that a
/// gradient is never reordered. What updates leave is sized by that. Reads graph, options, descs
/// and the tiles of the bands.
PerValue<TensorDesc> lay_out_variables(const Plan& plan, const Schedule& schedule,
                                       KernelChooser& chooser);

}  // namespace tutti
