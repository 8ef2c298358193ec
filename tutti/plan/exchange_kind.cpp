#include "tutti/plan/exchange_kind.h"

namespace tutti::plan {

ExchangeKind exchange_kind(const graph::Graph& graph, const graph::Node& node) {
  if (graph.walk(node) != graph::Walk::exchange) return ExchangeKind::none;
  if (!node.op->mutates(0)) return ExchangeKind::parts;
  if (!node.op->in_update()) return ExchangeKind::gradients;
  return graph[node.in.front()].role == graph::Role::parameter ? ExchangeKind::weights
                                                               : ExchangeKind::norms;
}

}  // namespace tutti::plan
