#pragma once
// What a node of the graph that ranks meet at exchanges: said here, and nowhere else.

#include <cstdint>

#include "tutti/graph/graph.h"

namespace tutti {

enum class ExchangeKind : uint8_t {
  none,       ///< the node is computed
  parts,      ///< values that other ranks have made, in outputs of its own
  gradients,  ///< a bucket's, each replaced by its sum
  norms,      ///< block sums of the update, replaced by theirs
  weights     ///< a bucket's new ones, of which every rank has its shard
};

ExchangeKind exchange_kind(const Graph& graph, const Node& node);

}  // namespace tutti
