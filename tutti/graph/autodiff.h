#pragma once
// Reverse-mode differentiation: appends explicit backward ops to the graph.

#include <functional>
#include <span>
#include <vector>

#include "tutti/graph/graph.h"

namespace tutti::graph {

/// Returns for each value, by its id, whether it depends on one of these parameters, or on the
/// outputs of an op that brings values trained elsewhere (Op::brings_trained).
std::vector<bool> depends_on(const Graph& graph, std::span<const Value> parameters);

/// Sums two gradients of one value that is read in two places. ops/ provides it (elementwise add),
/// because graph/ knows no op.
using SumOfGradients = std::function<Value(Graph&, Value, Value)>;

/// A table's gradient, represented by the gradient of the vectors that one node has looked up.
struct RowGradient {
  Value table, rows;  ///< inputs of the node
  Value weights;      ///< the node's input behind `rows`; invalid if there is none
  Value dy;           ///< gradient of the node's output, marked as an output of the graph
  OpPtr lookup;       ///< the op of the node
};

/// Differentiates the sum of `losses` (unbatched scalars) with respect to the parameters and tables
/// `trained`, marks each result with Role::gradient, and returns these parameters in the order in
/// which their gradients are produced. `gradients`, if given, receives the gradient of each value
/// that the graph had before, or an invalid Value. `trained` may hold tables: they have no gradient
/// and are not returned; `tables`, if given, receives their row gradients. Values that depend only
/// on other parameters are skipped. Throws ConfigError if a parameter does not influence a loss, or
/// an op on the way has no gradient.
std::vector<Value> differentiate(Graph& graph, std::span<const Value> losses,
                                 std::span<const Value> trained, const SumOfGradients& sum,
                                 std::vector<RowGradient>* tables = nullptr,
                                 std::vector<Value>* gradients = nullptr);

}  // namespace tutti::graph
