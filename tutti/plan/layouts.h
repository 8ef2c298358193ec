#pragma once
// Chooses the layout of each value of the graph.

#include <string>

#include "tutti/graph/per_value.h"
#include "tutti/plan/bands.h"
#include "tutti/plan/kernel_choice.h"
#include "tutti/plan/plan.h"

namespace tutti::plan {

/// Returns the results that a gradient grows from in its own memory (Op::in_place), none of which
/// another node reads; the one made last is first. For example, lookups add one after the other to
/// a result of an output layer.
std::vector<graph::Value> taken_over_by(const graph::Graph& graph, graph::Value gradient);

/// Gives activations the layout of this name if the backend offers it for their shape. All other
/// values are plain, outputs too, because the caller reads them.
graph::PerValue<TensorDesc> lay_out_activations(const graph::Graph& graph,
                                                const backend::Backend& backend,
                                                const std::string& layout);

/// Returns the plan's descs with parameters, gradients and states as options.variables has them.
/// Without options.variables a parameter takes the layout in which the backward pass makes its
/// gradient, so that a gradient is never reordered. The sizes of the updates' results follow from
/// that. Reads graph, options, descs and the tiles of the bands.
graph::PerValue<TensorDesc> lay_out_variables(const Plan& plan, const Schedule& schedule,
                                              KernelChooser& chooser);

}  // namespace tutti::plan
