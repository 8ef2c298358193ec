#include "tutti/base/error.h"
#include "tutti/ops/conv.h"
#include "tutti/ops/fusion/rewriter.h"
#include "tutti/ops/sequence/attention.h"

namespace tutti::ops {
namespace {

/// True where threads that take whole samples would wait for each other.
bool shares_badly(int64_t samples, int threads) {
  constexpr int64_t kEnough = 8;  // samples for each thread: one more or less matters little
  return samples % threads != 0 && samples < kEnough * threads;
}

/// Returns the op that the whole team runs, or null.
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

/// True for three taps in each dimension at stride 1, where sums of Winograd points are wanted. One
/// thread's sums would be larger than the weights; a kernel that knows all samples makes them a few
/// at a time.
bool has_points(const ConvBackwardWeights& op, DType type) {
  const ConvAttributes& a = op.conv();
  for (int d = 0; d < a.spatial; ++d)
    if (op.w_shape()[d + 2] != 3 || a.stride[static_cast<size_t>(d)] != 1) return false;
  return type == DType::f32 && a.spatial >= 2;
}

OpPtr weights_of_team(const Graph& graph, const Node& node, int threads) {
  constexpr int64_t kFewest = 16;  // channels: the kernels' panels are shared
  const auto* op = dynamic_cast<const ConvBackwardWeights*>(node.op.get());
  if (!op || op->whole() || op->conv().groups != 1 || op->w_shape()[0] < kFewest) return nullptr;
  const TensorDesc &x = graph.type(node.in[0]).desc, &dy = graph.type(node.in[1]).desc,
                   &dw = graph.type(node.out[0]).desc;
  const bool one_tap = op->conv().spatial == 1 && op->w_shape()[2] == 1;
  // Sharing saves what a thread's sums cost, but all threads still read x and dy, or make their
  // points.
  const bool pays = one_tap ? threads > 1 && 2 * dw.bytes() >= x.bytes() + dy.bytes()
                            : has_points(*op, x.dtype) && op->w_shape()[1] >= kFewest &&
                                  op->w_shape()[0] >= kFewest * threads &&
                                  dw.bytes() >= 4 * x.bytes() && 2 * dw.bytes() >= dy.bytes();
  if (!pays) return nullptr;
  return std::make_shared<ConvBackwardWeights>(op->conv(), op->w_shape(), true);
}

}  // namespace

Rewritten share_in_team(const Graph& graph, int threads) {
  CHECK(threads > 0, "a team of {} threads", threads);
  Rewriter rewriter(graph);
  for (const Node& node : graph.nodes()) {
    OpPtr op = attention_of_team(graph, node, threads);
    if (!op) op = weights_of_team(graph, node, threads);
    if (op) rewriter.replace(node, {node.name, std::move(op), node.in});
  }
  return rewriter.build();
}

}  // namespace tutti::ops
