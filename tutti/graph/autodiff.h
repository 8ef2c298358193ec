#pragma once
// Reverse-mode differentiation: appends explicit backward ops to the graph.

#include <functional>
#include <span>

#include "tutti/graph/graph.h"

namespace tutti {

/// Sums two gradients of one value that is read in two places; ops/ provides it (elementwise add),
/// graph/ knows no op.
using SumOfGradients = std::function<Value(Graph&, Value, Value)>;

/// Differentiates the sum of `losses` (unbatched scalars) with respect to the parameters `trained`,
/// marks each result with Role::gradient, and returns these parameters in the order in which their
/// gradients are produced. What other parameters alone depend on is not gone through. Throws
/// ConfigError if one of them does not influence a loss, or an op on the way has no gradient.
std::vector<Value> differentiate(Graph& graph, std::span<const Value> losses,
                                 std::span<const Value> trained, const SumOfGradients& sum);

}  // namespace tutti
