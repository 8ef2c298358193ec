#include "tutti/ops/fusion/fuse.h"

#include <algorithm>
#include <optional>

#include "tutti/ops/activation.h"
#include "tutti/ops/batch_norm.h"
#include "tutti/ops/conv.h"
#include "tutti/ops/elementwise.h"
#include "tutti/ops/fusion/rewriter.h"
#include "tutti/ops/pool.h"
#include "tutti/ops/rank_sums.h"
#include "tutti/ops/rows.h"
#include "tutti/ops/sequence/layer_norm.h"
#include "tutti/ops/sequence/lookup.h"
#include "tutti/ops/shape_ops.h"

namespace tutti::ops {
namespace {

struct NormFlags {
  bool relu, residual;
};

/// Returns `op` if it is a batch norm, for training or evaluation, without ReLU; else null.
const Op* plain_norm(const Op* op) {
  if (const auto* apply = dynamic_cast<const BatchNormApply*>(op))
    return apply->relu() ? nullptr : op;
  if (const auto* inference = dynamic_cast<const BatchNormInference*>(op))
    return inference->relu() ? nullptr : op;
  return nullptr;
}

/// True for batch norms of training and of evaluation.
bool is_norm(const Op* op) {
  return dynamic_cast<const BatchNormApply*>(op) || dynamic_cast<const BatchNormInference*>(op);
}

bool has_residual(const Op* op) {
  if (const auto* apply = dynamic_cast<const BatchNormApply*>(op)) return apply->residual();
  return dynamic_cast<const BatchNormInference&>(*op).residual();
}

/// Returns the same batch norm with other flags.
OpPtr with_flags(const Op* op, NormFlags flags) {
  if (const auto* inference = dynamic_cast<const BatchNormInference*>(op))
    return std::make_shared<BatchNormInference>(flags.relu, flags.residual, inference->epsilon());
  return std::make_shared<BatchNormApply>(flags.relu, flags.residual);
}

/// Returns the batch norm that makes v and can take more work, or null.
const Node* open_norm(const Rewriter& rewriter, Value v) {
  const Node* node = rewriter.only_read_here<Op>(v);
  return node && plain_norm(node->op.get()) ? node : nullptr;
}

/// Fuses an activation into a convolution; false if none makes its argument.
bool fuse_into_conv(Rewriter& rewriter, const Node& node, const ActivationAttributes& activation) {
  const Node* conv = rewriter.only_read_here<Conv>(node.in[0]);
  if (!conv || !activation.known_from_result()) return false;
  const auto& op = dynamic_cast<const Conv&>(*conv->op);
  if (op.activation()) return true;
  rewriter.replace(
      node, {conv->name, std::make_shared<Conv>(op.conv(), op.bias(), activation), conv->in});
  rewriter.drop(*conv);
  return true;
}

/// Fuses a ReLU into a batch norm, with or without an addition between them.
void fuse_relu(Rewriter& rewriter, const Node& relu) {
  const Value x = relu.in[0];
  if (const Node* norm = open_norm(rewriter, x)) {
    rewriter.replace(
        relu,
        {norm->name, with_flags(norm->op.get(), {true, has_residual(norm->op.get())}), norm->in});
    rewriter.drop(*norm);
    return;
  }
  const Node* sum = rewriter.only_read_here<Add>(x);
  if (!sum) return;
  for (size_t i = 0; i < 2; ++i) {
    const Node* norm = open_norm(rewriter, sum->in[i]);
    if (!norm || has_residual(norm->op.get())) continue;
    std::vector<Value> in = norm->in;
    in.push_back(sum->in[1 - i]);
    rewriter.replace(relu, {norm->name, with_flags(norm->op.get(), {true, true}), std::move(in)});
    rewriter.drop(*norm);
    rewriter.drop(*sum);
    return;
  }
}

/// Moves a maximum before the activation that it reads, if this never falls: the result is the
/// same, fewer elements are activated, and backward needs no others.
Rewritten take_maxima_first(const Graph& graph) {
  Rewriter rewriter(graph);
  for (const Node& node : graph.nodes()) {
    const auto* pool = dynamic_cast<const Pool*>(node.op.get());
    if (!pool || pool->pool().kind != PoolKind::max) continue;
    const Node* rising = rewriter.only_read_here<Activation>(node.in[0]);
    if (!rising || !dynamic_cast<const Activation&>(*rising->op).activation().never_falls())
      continue;
    rewriter.replace(*rising, {node.name, node.op, rising->in});
    rewriter.replace(node, {rising->name, rising->op, {rising->out[0]}});
  }
  return rewriter.build();
}

Rewritten fuse_activations(const Graph& graph) {
  Rewriter rewriter(graph);
  for (const Node& node : graph.nodes()) {
    const auto* activation = dynamic_cast<const Activation*>(node.op.get());
    if (!activation || fuse_into_conv(rewriter, node, activation->activation())) continue;
    if (activation->activation().kind == ActivationKind::relu) fuse_relu(rewriter, node);
  }
  return rewriter.build();
}

}  // namespace

Rewritten in_turn(const Rewritten& first, Rewritten second) {
  std::vector<Value> of;
  for (const Value v : first.of)
    of.push_back(v.valid() ? second.of[static_cast<size_t>(v.id)] : Value{});
  second.of = std::move(of);
  return second;
}

Rewritten fuse_forward(const Graph& graph) {
  const Rewritten first = take_maxima_first(graph);
  return in_turn(first, fuse_activations(first.graph));
}

namespace {

/// A convolution of each channel by itself does few operations for a number that it reads.
bool is_depthwise(const Graph& graph, const Node& node) {
  const auto* conv = dynamic_cast<const Conv*>(node.op.get());
  if (!conv) return false;
  const Shape& weight = graph.shape(node.in[1]);
  return conv->conv().groups > 1 && conv->conv().groups == weight[0] && weight[1] == 1;
}

/// True for an op that makes each position's result from that position of its input, which its
/// gradient reads, too.
bool is_pointwise(const Op* op) {
  if (const auto* activation = dynamic_cast<const Activation*>(op))
    return !activation->activation().known_from_result();
  return dynamic_cast<const LayerNorm*>(op) != nullptr;
}

/// Joins two sums of rows that are added: rows from other ranks are added beside this rank's own.
bool fold_rows(Rewriter& rewriter, const Node& node) {
  if (!dynamic_cast<const Add*>(node.op.get())) return false;
  const Node* a = rewriter.only_read_here<AddRows>(node.in[0]);
  const Node* b = rewriter.only_read_here<AddRows>(node.in[1]);
  if (!a || !b || a == b) return false;
  AddRows::Sum sum = dynamic_cast<const AddRows&>(*a->op).sum();
  const AddRows::Sum& more = dynamic_cast<const AddRows&>(*b->op).sum();
  if (sum.dim != more.dim || sum.slabs != more.slabs || sum.rows != more.rows) return false;
  sum.windows.insert(sum.windows.end(), more.windows.begin(), more.windows.end());
  std::vector<Value> in = a->in;
  in.insert(in.end(), b->in.begin(), b->in.end());
  rewriter.replace(node, {a->name, std::make_shared<AddRows>(std::move(sum)), std::move(in)});
  rewriter.drop(*a);
  rewriter.drop(*b);
  return true;
}

/// Returns where an op puts its input into a box of zeros, by dimension after the batch; nothing
/// for other ops.
std::optional<std::vector<SliceRange>> place_in_zeros(const Op* op, const Shape& x) {
  if (const auto* scatter = dynamic_cast<const SliceGrad*>(op)) return scatter->ranges();
  const auto* pad = dynamic_cast<const Pad*>(op);
  if (!pad || pad->value() != 0) return {};
  std::vector<SliceRange> ranges = full_ranges(x);
  for (size_t d = 0; d < ranges.size(); ++d) {
    ranges[d].start += pad->low()[d];
    ranges[d].stop += pad->low()[d];
  }
  return ranges;
}

}  // namespace

Rewritten join_moves(const Graph& graph) {
  Rewriter rewriter(graph);
  for (const Node& node : graph.nodes()) {
    if (node.in.size() != 1) continue;
    const auto to = place_in_zeros(node.op.get(), graph.shape(node.in[0]));
    const Node* slice = to ? rewriter.only_read_here<Slice>(node.in[0]) : nullptr;
    if (!slice) continue;
    const std::vector<SliceRange>& from = dynamic_cast<const Slice&>(*slice->op).ranges();
    rewriter.replace(
        node,
        {node.name, std::make_shared<MoveBox>(from, *to, graph.shape(node.out[0])), slice->in});
    rewriter.drop(*slice);
  }
  return rewriter.build();
}

Rewritten fold_row_sums(const Graph& graph) {
  Rewritten all{graph, {}};
  for (size_t i = 0; i < graph.values().size(); ++i)
    all.of.push_back(Value{static_cast<int32_t>(i)});
  for (bool changed = true; changed;) {  // three sums take two passes, each of which joins two
    Rewriter rewriter(all.graph);
    changed = false;
    for (const Node& node : all.graph.nodes()) changed = fold_rows(rewriter, node) || changed;
    if (!changed) break;
    Rewritten next = rewriter.build();
    for (Value& v : all.of)
      if (v.valid()) v = next.of[static_cast<size_t>(v.id)];
    all.graph = std::move(next.graph);
  }
  return all;
}

Rewritten fold_residual_sums(const Graph& graph) {
  Rewriter rewriter(graph);
  for (const Node& node : graph.nodes()) {
    const auto* reduce = dynamic_cast<const BatchNormGradReduce*>(node.op.get());
    if (!reduce || reduce->two()) continue;
    const Node* sum = rewriter.only_read_here<Add>(node.in[0]);
    if (!sum) continue;
    std::vector<Value> in = node.in;
    in[0] = sum->in[0];
    in.push_back(sum->in[1]);
    rewriter.replace(
        node,
        {node.name, std::make_shared<BatchNormGradReduce>(reduce->relu(), true, reduce->epsilon()),
         std::move(in)});
    rewriter.drop(*sum);
  }
  return rewriter.build();
}

Rewritten fold_lookup_sums(const Graph& graph) {
  Rewriter rewriter(graph);
  for (const Node& node : graph.nodes()) {
    if (!dynamic_cast<const Add*>(node.op.get())) continue;
    for (size_t i = 0; i < 2; ++i) {
      const Node* lookup = rewriter.only_read_here<LookupGrad>(node.in[i]);
      if (!lookup) continue;
      const auto& op = dynamic_cast<const LookupGrad&>(*lookup->op);
      if (op.adds()) continue;
      std::vector<Value> in = lookup->in;
      in.push_back(node.in[1 - i]);
      rewriter.replace(node,
                       {lookup->name, std::make_shared<LookupGrad>(op.w_shape(), true, op.first()),
                        std::move(in)});
      rewriter.drop(*lookup);
      break;
    }
  }
  return rewriter.build();
}

Rewritten drop_copies(const Graph& graph) {
  Rewriter rewriter(graph);
  for (const Node& node : graph.nodes())
    if (const auto* rule = dynamic_cast<const RuleOnly*>(node.op.get())) rewriter.skip(node, *rule);
  return rewriter.build();
}

Rewritten recompute_activations(const Graph& graph, size_t first_backward) {
  std::vector<int> forward_readers(graph.values().size()), backward_readers(graph.values().size());
  for (size_t n = 0; n < graph.nodes().size(); ++n) {
    if (n < first_backward && graph.nodes()[n].op->gives_to_others())
      continue;  // halos are kept, the rows that they come from are not
    for (const Value v : graph.nodes()[n].in)
      ++(n < first_backward ? forward_readers : backward_readers)[static_cast<size_t>(v.id)];
  }
  Rewriter rewriter(graph);
  for (size_t n = first_backward; n-- > 0;) {
    const Node& node = graph.nodes()[n];
    if (node.out.empty()) continue;
    const auto z = static_cast<size_t>(node.out[0].id);
    if (backward_readers[z] == 0) continue;
    const bool rows = dynamic_cast<const GatherRows*>(node.op.get()) != nullptr;
    const bool cheap = (is_norm(node.op.get()) && !has_residual(node.op.get())) ||
                       is_depthwise(graph, node) || is_pointwise(node.op.get());
    if (!rows && (!cheap || forward_readers[z] != 1)) continue;
    rewriter.repeat(node, first_backward);
    for (const Value v : node.in) ++backward_readers[static_cast<size_t>(v.id)];
  }
  return rewriter.build();
}

}  // namespace tutti::ops
