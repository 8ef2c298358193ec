#include "tutti/plan/exchange_kind.h"

namespace tutti {

ExchangeKind exchange_kind(const Graph& graph, const Node& node) {
  std::vector<ValueType> types;
  for (const Value v : node.in) types.push_back(graph.type(v));
  if (node.op->walk(types) != Walk::exchange) return ExchangeKind::none;
  if (!node.op->mutates(0)) return ExchangeKind::parts;
  if (!node.op->in_update()) return ExchangeKind::gradients;
  return graph[node.in.front()].role == Role::parameter ? ExchangeKind::weights
                                                        : ExchangeKind::norms;
}

}  // namespace tutti
