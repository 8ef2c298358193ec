#include "tutti/ops/attention.h"
#include "tutti/ops/conv.h"
#include "tutti/ops/rewriter.h"

namespace tutti {
namespace {

/// Shares of whole samples keep the threads waiting for each other.
bool shares_badly(int64_t samples, int threads) {
  constexpr int64_t kEnough = 8;  // to a thread: one more or less is little
  return samples % threads != 0 && samples < kEnough * threads;
}

/// The op by the whole team, or null.
OpPtr attention_of_team(const Graph& graph, const Node& node, int threads) {
  const auto of_team = [&](const auto* op) -> OpPtr {
    AttentionAttributes a = op->attention();
    if (a.whole || !shares_badly(graph.shape(node.in[0])[0], threads)) return nullptr;
    a.whole = true;
    return std::make_shared<std::remove_cvref_t<decltype(*op)>>(a);
  };
  if (const auto* op = dynamic_cast<const Attention*>(node.op.get())) return of_team(op);
  if (const auto* op = dynamic_cast<const AttentionGrad*>(node.op.get())) return of_team(op);
  return nullptr;
}

OpPtr weights_of_team(const Graph& graph, const Node& node) {
  constexpr int64_t kFewest = 16;  // outputs: the kernels' panels are shared
  const auto* op = dynamic_cast<const ConvBackwardWeights*>(node.op.get());
  if (!op || op->whole() || op->conv().spatial != 1 || op->conv().groups != 1) return nullptr;
  if (op->w_shape()[2] != 1) return nullptr;  // only kernels of one tap share their outputs
  const size_t from = graph.type(node.in[0]).desc.bytes() + graph.type(node.in[1]).desc.bytes();
  if (op->w_shape()[0] < kFewest || 2 * graph.type(node.out[0]).desc.bytes() < from) return nullptr;
  return std::make_shared<ConvBackwardWeights>(op->conv(), op->w_shape(), true);
}

}  // namespace

Rewritten share_in_team(const Graph& graph, int threads) {
  Rewriter rewriter(graph);
  for (const Node& node : graph.nodes()) {
    if (threads < 2) break;
    OpPtr op = attention_of_team(graph, node, threads);
    if (!op) op = weights_of_team(graph, node);
    if (op) rewriter.replace(node, {node.name, std::move(op), node.in});
  }
  return rewriter.build();
}

}  // namespace tutti
