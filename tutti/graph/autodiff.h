#pragma once
// Reverse-mode differentiation: appends explicit backward ops to the graph.

#include <functional>
#include <span>
#include <vector>

#include "tutti/graph/graph.h"

namespace tutti {

/// Per value, by its id: does it depend on one of these parameters, or on what an op brings that is
/// trained elsewhere?
std::vector<bool> depends_on(const Graph& graph, std::span<const Value> parameters);

/// Sums two gradients of one value that is read in two places; ops/ provides it (elementwise add),
/// graph/ knows no op.
using SumOfGradients = std::function<Value(Graph&, Value, Value)>;

/// What is known of a table's gradient: that of the vectors which one node has looked up.
struct RowGradient {
  Value table, rows;  ///< inputs of the node
  Value weights;      ///< the one behind them; invalid where there is none
  Value dy;           ///< gradient of its output, and an output of the graph
  OpPtr lookup;       ///< the op of the node
};

/// Differentiates the sum of `losses` (unbatched scalars) with respect to the parameters and tables
/// `trained`, marks each result with Role::gradient, and returns these parameters in the order in
/// which their gradients are produced. `gradients`, where given, gets the gradient of each value of
/// the graph as it was, or an invalid Value. `trained` may hold tables: they have no gradient and
/// are not among those that are returned; `tables`, where given, gets theirs. What other parameters
/// alone depend on is not gone through. Throws ConfigError if one of them does not influence a
/// loss, or an op on the way has no gradient.
std::vector<Value> differentiate(Graph& graph, std::span<const Value> losses,
                                 std::span<const Value> trained, const SumOfGradients& sum,
                                 std::vector<RowGradient>* tables = nullptr,
                                 std::vector<Value>* gradients = nullptr);

}  // namespace tutti
