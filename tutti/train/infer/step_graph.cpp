#include "tutti/train/infer/step_graph.h"

#include <algorithm>

#include "tutti/base/error.h"
#include "tutti/ops/builder.h"
#include "tutti/ops/sequence/attention.h"
#include "tutti/ops/sequence/sequence.h"

namespace tutti::train {
namespace {

TensorDesc with_rows(const graph::ValueInfo& info, int64_t rows) {
  TensorDesc desc = info.type.desc;
  CHECK(info.type.batched, "{} is the same for all samples", info.name);
  desc.shape[0] = rows;
  return desc;
}

class StepRewriter {
 public:
  StepRewriter(const models::ModelGraph& model, graph::Value tokens, int64_t window, int64_t rows,
               int64_t sources)
      : old_(model.graph), tokens_(tokens), window_(window), rows_(rows), sources_(sources),
        stepped_(old_.values().size()), of_(old_.values().size()), before_(old_.values().size()) {
    stepped_[index(tokens)] = true;
    for (const graph::Node& node : old_.nodes())
      for (const graph::Value v : node.out)
        stepped_[index(v)] =
            std::ranges::any_of(node.in, [&](graph::Value in) { return stepped_[index(in)]; });
  }

  std::optional<StepGraph> build() && {
    result_.position = graph().input("position", {DType::i32, {rows_, 1}, {}});
    result_.seen = graph().input("seen", {DType::i32, {rows_, window_}, {}});
    for (const graph::Node& node : old_.nodes()) {
      if (node.op->name() == "token_loss") {
        result_.logits = ops::convert(graph(), "next", of(node.in[0]), DType::f32);
        graph().mark_output(result_.logits);
        result_.token = of(tokens_);
        return several_sources_ ? std::nullopt : std::optional(std::move(result_));
      }
      if (node.op->name() == "count_tokens") continue;  // a step has no labels
      if (!stepped_[index(node.out[0])])
        copy_before(node);
      else if (!copy(node))
        return std::nullopt;
    }
    return std::nullopt;
  }

 private:
  static size_t index(graph::Value v) { return static_cast<size_t>(v.id); }
  graph::Graph& graph() { return result_.graph; }

  /// Returns the variable of either graph; invalid if `v` is not one.
  graph::Value variable(graph::Graph& graph, graph::Value v) const {
    const graph::ValueInfo& info = old_[v];
    if (info.role == graph::Role::parameter)
      return graph.parameter(info.name, info.type.desc.shape, info.init);
    if (info.role == graph::Role::statistic)
      return graph.statistic(info.name, info.type.desc.shape, info.init);
    return {};
  }

  /// Inputs and values computed before are registered when they are first read.
  graph::Value of(graph::Value v) {
    graph::Value& known = of_[index(v)];
    if (known.valid()) return known;
    if (known = variable(graph(), v); known.valid()) return known;
    const graph::ValueInfo& info = old_[v];
    if (stepped_[index(v)]) {
      CHECK(v == tokens_, "{} is read before it is made", info.name);
      return known = graph().input(info.name, info.type.desc, info.type.batched);
    }
    known = graph().input(info.name, with_rows(info, rows_), info.type.batched);
    const graph::Value there = of_before(v);
    if (info.producer >= 0) result_.before.mark_output(there);
    result_.crossings.push_back({there, known});
    return known;
  }

  graph::Value of_before(graph::Value v) {
    graph::Value& known = before_[index(v)];
    if (known.valid()) return known;
    if (known = variable(result_.before, v); known.valid()) return known;
    const graph::ValueInfo& info = old_[v];
    CHECK(info.producer < 0, "{} is read before it is made", info.name);
    known = result_.before.input(info.name, with_rows(info, sources_), info.type.batched);
    several_sources_ = several_sources_ || result_.source.valid();
    result_.source = known;
    return known;
  }

  void copy_before(const graph::Node& node) {
    std::vector<graph::Value> in;
    for (const graph::Value v : node.in) in.push_back(of_before(v));
    const std::vector<graph::Value> out = result_.before.append(node.name, node.op, in);
    for (size_t i = 0; i < out.size(); ++i) before_[index(node.out[i])] = out[i];
  }

  bool copy(const graph::Node& node) {
    if (node.op->name() == "add_positions") {
      const graph::Value x = of(node.in[0]);
      const graph::Value place = ops::lookup(graph(), node.name + ".place", of(node.in[1]),
                                             result_.position, graph().type(x).desc.dtype);
      of_[index(node.out[0])] = ops::add(graph(), node.name, x, place);
      return true;
    }
    if (node.op->name() == "add_sinusoids" || node.op->name() == "rotate") {
      of_[index(node.out[0])] =
          graph().append1(node.name, node.op, {of(node.in[0]), result_.position});
      return true;
    }
    if (const auto* attention = dynamic_cast<const ops::Attention*>(node.op.get());
        attention && (attention->attention().inputs == ops::AttentionInputs::packed ||
                      stepped_[index(node.in[1])]))
      return attend(node, attention->attention());
    std::vector<graph::Value> in;
    for (const graph::Value v : node.in) in.push_back(of(v));
    const std::vector<graph::Value> out = graph().append(node.name, node.op, in);
    for (size_t i = 0; i < out.size(); ++i) of_[index(node.out[i])] = out[i];
    return true;
  }

  /// Concatenates the stored values of earlier tokens and this token's.
  graph::Value with_kept(const std::string& name, graph::Value made) {
    const TensorDesc& desc = graph().type(made).desc;
    const graph::Value kept =
        graph().input(name + ".kept", {desc.dtype, {rows_, desc.shape[1], window_ - 1}, {}});
    graph().mark_output(made);
    result_.layers.push_back({kept, made});
    return ops::concat(graph(), name + ".all", {kept, made}, 2);
  }

  /// Appends this token's keys and values to the stored ones.
  bool attend(const graph::Node& node, ops::AttentionAttributes a) {
    if (!a.causal || a.mask != ops::AttentionMask::none ||
        a.inputs == ops::AttentionInputs::q_and_kv)
      return false;
    std::vector<graph::Value> in;
    if (a.inputs == ops::AttentionInputs::separate) {
      in = {of(node.in[0]), with_kept(node.name + ".k", of(node.in[1])),
            with_kept(node.name + ".v", of(node.in[2]))};
    } else {
      const graph::Value qkv = of(node.in[0]);
      const int64_t channels = graph().shape(qkv)[1],
                    queries = a.heads * (channels / (a.heads + 2 * a.key_heads));
      const graph::Value kv =
          ops::slice(graph(), node.name + ".kv", qkv, {{queries, channels}, {0, 1}});
      in = {ops::slice(graph(), node.name + ".q", qkv, {{0, queries}, {0, 1}}),
            with_kept(node.name, kv)};
      a.inputs = ops::AttentionInputs::q_and_kv;
    }
    in.push_back(result_.seen);
    a.causal = false;
    a.mask = ops::AttentionMask::keys;
    of_[index(node.out[0])] = attention(graph(), node.name, in, a);
    return true;
  }

  const graph::Graph& old_;
  const graph::Value tokens_;
  const int64_t window_, rows_, sources_;
  std::vector<bool> stepped_;              // values that depend on the tokens
  std::vector<graph::Value> of_, before_;  // values in both graphs
  bool several_sources_ = false;
  StepGraph result_;
};

}  // namespace

std::optional<StepGraph> step_graph(const models::ModelGraph& model, graph::Value tokens,
                                    int64_t window, int64_t rows, int64_t sources) {
  return StepRewriter(model, tokens, window, rows, sources).build();
}

}  // namespace tutti::train
