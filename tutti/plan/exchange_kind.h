#pragma once
// Decides which nodes of the graph are exchanges between ranks; no other place does.

#include <cstdint>

#include "tutti/graph/graph.h"

namespace tutti::plan {

enum class ExchangeKind : uint8_t {
  none,       ///< the node is computed
  parts,      ///< receives values that other ranks have made, in outputs of its own
  gradients,  ///< replaces each gradient of a bucket by its sum
  norms,      ///< replaces block sums of the update by their sums
  weights     ///< completes a bucket's new weights, of which every rank has its shard
};

ExchangeKind exchange_kind(const graph::Graph& graph, const graph::Node& node);

}  // namespace tutti::plan
