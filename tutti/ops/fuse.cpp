#include "tutti/ops/fuse.h"

#include <algorithm>
#include <map>

#include "tutti/ops/activation.h"
#include "tutti/ops/batch_norm.h"
#include "tutti/ops/conv.h"
#include "tutti/ops/elementwise.h"
#include "tutti/ops/lookup.h"
#include "tutti/ops/pool.h"
#include "tutti/ops/rank_sums.h"
#include "tutti/ops/rows.h"

namespace tutti {
namespace {

/// What to append in place of one node, in terms of the old graph's values.
struct Replacement {
  std::string name;
  OpPtr op;
  std::vector<Value> in;
};

/// Copies a graph node by node, leaving out some nodes and replacing others.
class Rewriter {
 public:
  explicit Rewriter(const Graph& old)
      : old_(old), drop_(old.nodes().size()), replace_(old.nodes().size()),
        repeat_from_(old.nodes().size()) {
    readers_.resize(old.values().size());
    for (const Node& node : old.nodes())
      for (const Value v : node.in) ++readers_[static_cast<size_t>(v.id)];
    for (const Value v : old.outputs()) ++readers_[static_cast<size_t>(v.id)];
  }

  /// The node that makes v, if v is read in one place only and the node has an op of type T; else
  /// null.
  template <class T>
  const Node* only_read_here(Value v) const {
    const ValueInfo& info = old_[v];
    if (info.producer < 0 || readers_[static_cast<size_t>(v.id)] != 1 ||
        info.role != Role::result || drop_[static_cast<size_t>(info.producer)])
      return nullptr;
    const Node& node = old_.nodes()[static_cast<size_t>(info.producer)];
    return dynamic_cast<const T*>(node.op.get()) ? &node : nullptr;
  }

  void drop(const Node& node) { drop_[index_of(node)] = true; }
  /// Inputs are read in the place of its results.
  void skip(const Node& node, const RuleOnly& rule) {
    drop(node);
    for (size_t i = 0; i < node.out.size(); ++i)
      same_as_[node.out[i].id] = node.in[static_cast<size_t>(rule.same_as(static_cast<int>(i)))];
  }
  /// Nodes from index `from` on read a second copy of the node's result, made just before the first
  /// of them.
  void repeat(const Node& node, size_t from) { repeat_from_[index_of(node)] = from; }
  void replace(const Node& node, Replacement replacement) {
    replace_[index_of(node)] = std::move(replacement);
  }

  Rewritten build() {
    result_.of.resize(old_.values().size());
    for (size_t n = 0; n < old_.nodes().size(); ++n) {
      const Node& node = old_.nodes()[n];
      copy_bound(last_bound_before(node));
      for (const Value v : node.out)
        if (const auto same = same_as_.find(v.id); same != same_as_.end())
          of(v) = read(same->second, n);
      if (drop_[n]) continue;
      const Replacement& other = replace_[n];
      std::vector<Value> in;
      for (const Value v : other.op ? other.in : node.in) in.push_back(read(v, n));
      const std::vector<Value> out = result_.graph.append(other.op ? other.name : node.name,
                                                          other.op ? other.op : node.op, in);
      CHECK(other.op || out.size() == node.out.size(), "rewriting '{}'", node.name);
      for (size_t i = 0; i < std::min(out.size(), node.out.size()); ++i) of(node.out[i]) = out[i];
    }
    copy_bound(static_cast<int32_t>(old_.values().size()));
    for (const Value v : old_.with_role(Role::gradient))
      result_.graph.mark_gradient(of(v), of(old_[v].of));
    for (const Value v : old_.outputs()) result_.graph.mark_output(of(v));
    return std::move(result_);
  }

 private:
  /// What node n reads for the old value v.
  Value read(Value v, size_t n) {
    const int producer = old_[v].producer;
    if (producer < 0 || repeat_from_[static_cast<size_t>(producer)] == 0 ||
        n < repeat_from_[static_cast<size_t>(producer)])
      return of(v);
    if (!again_.contains(v.id)) {
      const Node& node = old_.nodes()[static_cast<size_t>(producer)];
      std::vector<Value> in;
      for (const Value x : node.in) in.push_back(read(x, n));
      again_[v.id] = result_.graph.append(node.name + " again", node.op, in).front();
    }
    return again_.at(v.id);
  }

  size_t index_of(const Node& node) const {
    return static_cast<size_t>(&node - old_.nodes().data());
  }
  Value& of(Value v) { return result_.of[static_cast<size_t>(v.id)]; }

  /// Values that the caller binds keep their place among the results, so that a listing of
  /// parameters keeps its order.
  static int32_t last_bound_before(const Node& node) {
    int32_t end = node.out.empty() ? 0 : node.out.front().id;
    for (const Value v : node.in) end = std::max(end, v.id + 1);
    return end;
  }

  void copy_bound(int32_t end) {
    Graph& graph = result_.graph;
    for (; next_bound_ < end; ++next_bound_) {
      const Value v{next_bound_};
      const ValueInfo& info = old_[v];
      switch (info.role) {
        case Role::input: of(v) = graph.input(info.name, info.type.desc, info.type.batched); break;
        case Role::parameter:
          of(v) = graph.parameter(info.name, info.type.desc.shape, info.init);
          break;
        case Role::table:
          of(v) = graph.table(info.name, info.type.desc.shape, info.init, info.rows);
          break;
        case Role::statistic:
          of(v) = graph.statistic(info.name, info.type.desc.shape, info.init);
          break;
        case Role::state: of(v) = graph.state(info.name, of(info.of)); break;
        case Role::scalar: of(v) = graph.scalar(info.name); break;
        case Role::gradient:
        case Role::result: break;
      }
    }
  }

  const Graph& old_;
  std::vector<int> readers_;
  std::vector<bool> drop_;
  std::vector<Replacement> replace_;
  std::vector<size_t> repeat_from_;           // 0 = never
  std::map<int32_t, Value> again_, same_as_;  // by old value
  Rewritten result_;
  int32_t next_bound_ = 0;
};

struct NormFlags {
  bool relu, residual;
};

/// `op` if it is a batch norm, for training or evaluation, without ReLU; else null.
const Op* plain_norm(const Op* op) {
  if (const auto* apply = dynamic_cast<const BatchNormApply*>(op))
    return apply->relu() ? nullptr : op;
  if (const auto* inference = dynamic_cast<const BatchNormInference*>(op))
    return inference->relu() ? nullptr : op;
  return nullptr;
}

/// For training or evaluation.
bool is_norm(const Op* op) {
  return dynamic_cast<const BatchNormApply*>(op) || dynamic_cast<const BatchNormInference*>(op);
}

bool has_residual(const Op* op) {
  if (const auto* apply = dynamic_cast<const BatchNormApply*>(op)) return apply->residual();
  return dynamic_cast<const BatchNormInference&>(*op).residual();
}

/// The same batch norm with other flags.
OpPtr with_flags(const Op* op, NormFlags flags) {
  if (const auto* inference = dynamic_cast<const BatchNormInference*>(op))
    return std::make_shared<BatchNormInference>(flags.relu, flags.residual, inference->epsilon());
  return std::make_shared<BatchNormApply>(flags.relu, flags.residual);
}

/// The batch norm that makes v and can take more work, or null.
const Node* open_norm(const Rewriter& rewriter, Value v) {
  const Node* node = rewriter.only_read_here<Op>(v);
  return node && plain_norm(node->op.get()) ? node : nullptr;
}

/// Into a convolution; false if none makes its argument.
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

/// Into a batch norm, with an addition between them or without.
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

/// A maximum before the activation that it reads, if that never falls: the maximum of its results
/// is its result for the maximum. There are fewer of these, and backward needs no others.
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

Rewritten fuse_forward(const Graph& graph) {
  const Rewritten first = take_maxima_first(graph);
  Rewritten fused = fuse_activations(first.graph);
  std::vector<Value> of;
  for (const Value v : first.of)
    of.push_back(v.valid() ? fused.of[static_cast<size_t>(v.id)] : Value{});
  fused.of = std::move(of);
  return fused;
}

namespace {

/// A convolution of each channel by itself does a few operations for a number that it reads.
bool is_depthwise(const Graph& graph, const Node& node) {
  const auto* conv = dynamic_cast<const Conv*>(node.op.get());
  if (!conv) return false;
  const Shape& weight = graph.shape(node.in[1]);
  return conv->conv().groups > 1 && conv->conv().groups == weight[0] && weight[1] == 1;
}

/// A sum of two sums of rows is one: rows that others have sent go where this rank's own do.
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

}  // namespace

Rewritten fold_row_sums(const Graph& graph) {
  Rewritten all{graph, {}};
  for (size_t i = 0; i < graph.values().size(); ++i)
    all.of.push_back(Value{static_cast<int32_t>(i)});
  for (bool changed = true; changed;) {  // of three sums, two become one each time
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
      continue;  // halos are kept, what they are rows of is not
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
    const bool cheap =
        (is_norm(node.op.get()) && !has_residual(node.op.get())) || is_depthwise(graph, node);
    if (!rows && (!cheap || forward_readers[z] != 1)) continue;
    rewriter.repeat(node, first_backward);
    for (const Value v : node.in) ++backward_readers[static_cast<size_t>(v.id)];
  }
  return rewriter.build();
}

}  // namespace tutti
