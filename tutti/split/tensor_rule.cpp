#include "tutti/split/tensor_rule.h"

#include <algorithm>
#include <functional>
#include <numeric>
#include <optional>
#include <set>

#include "tutti/ops/activation.h"
#include "tutti/ops/conv.h"
#include "tutti/ops/dense.h"
#include "tutti/ops/elementwise.h"
#include "tutti/ops/sequence/attention.h"
#include "tutti/ops/sequence/lookup.h"
#include "tutti/ops/sequence/swiglu.h"
#include "tutti/ops/sequence/token_loss.h"
#include "tutti/ops/sequence/waves.h"

namespace tutti::split {
namespace {

using Blocks = std::vector<graph::ChannelBlock>;

/// Returns the number of inputs of an op that works on some channels as it does on all; 0 for other
/// ops.
size_t channel_inputs(const graph::Op& op) {
  if (const auto* a = dynamic_cast<const ops::Attention*>(&op)) return a->attention().sequences();
  if (dynamic_cast<const ops::Activation*>(&op) || dynamic_cast<const ops::Scale*>(&op) ||
      dynamic_cast<const ops::Rotate*>(&op))
    return 1;
  if (dynamic_cast<const ops::Add*>(&op) || dynamic_cast<const ops::Mul*>(&op) ||
      dynamic_cast<const ops::SwiGlu*>(&op))
    return 2;
  return 0;
}

/// Returns the channel blocks of attention's inputs and of its two outputs.
std::vector<Blocks> blocks_of_attention(const ops::AttentionAttributes& a, int64_t width) {
  const graph::ChannelBlock q{a.heads * width, width}, kv{a.key_heads * width, width};
  std::vector<Blocks> blocks;
  switch (a.inputs) {
    case ops::AttentionInputs::packed: blocks = {{q, kv, kv}}; break;
    case ops::AttentionInputs::q_and_kv: blocks = {{q}, {kv, kv}}; break;
    case ops::AttentionInputs::separate: blocks = {{q}, {kv}, {kv}}; break;
  }
  blocks.push_back({q});
  blocks.push_back({{a.heads, 1}});
  return blocks;
}

/// Finds the layers that ranks can share.
class TensorRuleFinder {
 public:
  TensorRuleFinder(const graph::Graph& graph, int ranks)
      : graph_(graph), ranks_(ranks), readers_(graph.values().size()),
        root_(graph.values().size()) {
    rule_.nodes.resize(graph.nodes().size());
    std::iota(root_.begin(), root_.end(), 0);
    for (size_t n = 0; n < graph.nodes().size(); ++n)
      for (const graph::Value v : graph.nodes()[n].in) readers_[at(v)].push_back(n);
  }

  TensorRule find() {
    for (const graph::Node& node : graph_.nodes()) join(node);
    std::map<int, std::vector<graph::Value>> regions;
    for (size_t i = 0; i < root_.size(); ++i) {
      const graph::Value v{static_cast<int32_t>(i)};
      if (made_by(v) && is_float(v)) regions[root_of(static_cast<int>(i))].push_back(v);
    }
    for (const std::vector<graph::Value>& values : largest_first(std::move(regions)))
      take_region(values);
    for (const graph::Value p : graph_.with_role(graph::Role::parameter)) take_vocabulary(p);
    return std::move(rule_);
  }

 private:
  static size_t at(graph::Value v) { return static_cast<size_t>(v.id); }
  const graph::Node& node(size_t n) const { return graph_.nodes()[n]; }
  bool is_float(graph::Value v) const {
    return graph_.type(v).batched && graph_.shape(v).rank() > 1;
  }
  const graph::Node* made_by(graph::Value v) const {
    const int producer = graph_[v].producer;
    return producer < 0 ? nullptr : &graph_.nodes()[static_cast<size_t>(producer)];
  }
  int root_of(int v) {
    while (root_[static_cast<size_t>(v)] != v) v = root_[static_cast<size_t>(v)];
    return v;
  }
  bool is_output(graph::Value v) const {
    return std::ranges::find(graph_.outputs(), v) != graph_.outputs().end();
  }

  /// Values that an op processes channel by channel are shared in the same way.
  void join(const graph::Node& n) {
    const size_t inputs = channel_inputs(*n.op);
    if (inputs == 0) return;
    const auto join_with = [&](graph::Value v) {
      root_[static_cast<size_t>(root_of(v.id))] = root_of(n.out[0].id);
    };
    for (size_t i = 0; i < inputs; ++i) join_with(n.in[i]);
    for (const graph::Value v : n.out) join_with(v);
  }

  /// Whether no other node reads the layer's parameters.
  bool owns_parameters(const graph::Node& linear) const {
    return std::ranges::all_of(linear.in.begin() + 1, linear.in.end(), [&](graph::Value p) {
      return graph_[p].role == graph::Role::parameter && readers_[at(p)].size() == 1;
    });
  }

  /// Whether the value is made and read only by layers and ops that ranks can share, and none of
  /// the layers is taken already.
  bool is_open(graph::Value v) const {
    const graph::Node* maker = made_by(v);
    if (!maker || is_output(v)) return false;
    const auto free_layer = [&](const graph::Node& n) {
      return is_linear(graph_, n) && owns_parameters(n) &&
             rule_.nodes[static_cast<size_t>(&n - graph_.nodes().data())] == TensorCut::none;
    };
    if (channel_inputs(*maker->op) == 0 && !free_layer(*maker)) return false;
    return std::ranges::all_of(readers_[at(v)], [&](size_t n) {
      const graph::Node& reader = node(n);
      const size_t inputs = channel_inputs(*reader.op);
      if (inputs == 0) return free_layer(reader) && reader.in[0] == v;
      return std::ranges::find(reader.in.begin(),
                               reader.in.begin() + static_cast<std::ptrdiff_t>(inputs),
                               v) != reader.in.begin() + static_cast<std::ptrdiff_t>(inputs);
    });
  }

  std::set<size_t> nodes_of(const std::vector<graph::Value>& values) const {
    std::set<size_t> nodes;
    for (const graph::Value v : values) {
      nodes.insert(static_cast<size_t>(graph_[v].producer));
      nodes.insert(readers_[at(v)].begin(), readers_[at(v)].end());
    }
    return nodes;
  }

  /// Returns the channel blocks of each value, as attention needs them, elsewhere single channels.
  /// Nothing if two ops need different blocks, or if there are fewer than one for each rank.
  std::optional<std::map<int32_t, Blocks>> blocks_of(const std::vector<graph::Value>& values,
                                                     const std::set<size_t>& nodes) const {
    std::map<int32_t, Blocks> blocks;
    bool fits = true, changed = true;
    const auto set = [&](graph::Value v, const Blocks& wanted) {
      const auto [found, added] = blocks.try_emplace(v.id, wanted);
      fits = fits && found->second == wanted;
      changed = changed || added;
    };
    while (std::exchange(changed, false) && fits)
      for (const size_t n : nodes) {
        const graph::Op& op = *node(n).op;
        const size_t inputs = channel_inputs(op);
        std::vector<graph::Value> joined(node(n).in.begin(),
                                         node(n).in.begin() + static_cast<std::ptrdiff_t>(inputs));
        joined.insert(joined.end(), node(n).out.begin(), node(n).out.end());
        if (inputs == 0) continue;
        if (const auto* a = dynamic_cast<const ops::Attention*>(&op)) {
          const std::vector<Blocks> wanted = blocks_of_attention(
              a->attention(), graph_.shape(node(n).out[0])[1] / a->attention().heads);
          for (size_t i = 0; i < joined.size(); ++i) set(joined[i], wanted[i]);
          fits =
              fits && a->attention().heads % ranks_ == 0 && a->attention().key_heads % ranks_ == 0;
          continue;
        }
        for (const graph::Value v : joined)
          if (const auto known = blocks.find(v.id); known != blocks.end())
            for (const graph::Value other : joined) set(other, Blocks(known->second));
      }
    for (const size_t n : nodes)
      if (const auto* r = dynamic_cast<const ops::Rotate*>(node(n).op.get()))
        fits = fits && r->rotation().heads % ranks_ == 0 && blocks.contains(node(n).in[0].id) &&
               blocks.at(node(n).in[0].id).front().unit == r->rotation().width;
    for (const graph::Value v : values)
      set(v, blocks.contains(v.id) ? blocks.at(v.id) : Blocks{{graph_.shape(v)[1], 1}});
    for (const auto& [v, of_value] : blocks)
      for (const graph::ChannelBlock& block : of_value)
        fits = fits && block.extent / block.unit >= ranks_;
    return fits ? std::optional(std::move(blocks)) : std::nullopt;
  }

  /// Sorts by the size of the parameters that ranks would share: one layer may fit into two
  /// regions, as the second one of a pair beside a large layer (models/lora.h) does.
  std::vector<std::vector<graph::Value>> largest_first(
      std::map<int, std::vector<graph::Value>> regions) const {
    std::vector<std::vector<graph::Value>> sorted;
    for (auto& [root, values] : regions) sorted.push_back(std::move(values));
    std::ranges::stable_sort(sorted, std::greater{}, [&](const std::vector<graph::Value>& values) {
      int64_t elements = 0;
      for (const size_t n : nodes_of(values))
        for (const graph::Value v : node(n).in)
          if (graph_[v].role == graph::Role::parameter) elements += graph_.shape(v).elements();
      return elements;
    });
    return sorted;
  }

  void take_region(const std::vector<graph::Value>& values) {
    if (!std::ranges::all_of(values, [&](graph::Value v) { return is_open(v); })) return;
    const std::set<size_t> nodes = nodes_of(values);
    const auto is_member = [&](graph::Value v) {
      return std::ranges::find(values, v) != values.end();
    };
    std::map<size_t, TensorCut> cuts;
    for (const size_t n : nodes) {
      const bool made = std::ranges::any_of(node(n).out, is_member),
                 read = is_member(node(n).in[0]);
      cuts[n] = channel_inputs(*node(n).op) > 0 ? TensorCut::inside
                : made                          ? TensorCut::columns
                                                : TensorCut::rows;
      if (cuts[n] == TensorCut::columns && read) return;
    }
    const auto count = [&](TensorCut cut) {
      return std::ranges::count(cuts, cut, &std::pair<const size_t, TensorCut>::second);
    };
    if (count(TensorCut::columns) == 0 || count(TensorCut::rows) == 0) return;
    auto blocks = blocks_of(values, nodes);
    if (!blocks) return;
    for (const auto& [n, cut] : cuts) {
      rule_.nodes[n] = cut;
      rule_.heads += dynamic_cast<const ops::Attention*>(node(n).op.get()) != nullptr;
    }
    rule_.columns += count(TensorCut::columns);
    rule_.rows += count(TensorCut::rows);
    rule_.blocks.merge(*blocks);
  }

  /// Whether the node makes logits that only the loss over a vocabulary, or an evaluation's hits,
  /// read.
  bool makes_logits(size_t n, graph::Value weight) const {
    const graph::Node& layer = node(n);
    if (!is_linear(graph_, layer) || layer.in[1] != weight || is_output(layer.out[0]) ||
        rule_.nodes[n] != TensorCut::none)
      return false;
    if (layer.in.size() > 2 && readers_[at(layer.in[2])].size() != 1) return false;
    const std::vector<size_t>& readers = readers_[at(layer.out[0])];
    return !readers.empty() && std::ranges::all_of(readers, [&](size_t r) {
      const graph::Op* const op = node(r).op.get();
      return (dynamic_cast<const ops::TokenLoss*>(op) || dynamic_cast<const ops::TokenHits*>(op)) &&
             node(r).in[0] == layer.out[0];
    });
  }

  /// Shares a weight [V, C, ...] in which tokens are looked up, or which makes logits, or both.
  void take_vocabulary(graph::Value weight) {
    const std::vector<size_t>& readers = readers_[at(weight)];
    const auto looks_up = [&](size_t n) {
      return dynamic_cast<const ops::Lookup*>(node(n).op.get()) && node(n).in[0] == weight;
    };
    if (readers.empty() || graph_.shape(weight)[0] < ranks_ ||
        !std::ranges::all_of(readers,
                             [&](size_t n) { return looks_up(n) || makes_logits(n, weight); }))
      return;
    const Blocks rows{{graph_.shape(weight)[0], 1}};
    for (const size_t n : readers) {
      rule_.nodes[n] = looks_up(n) ? TensorCut::lookup : TensorCut::columns;
      if (looks_up(n)) continue;
      const graph::Value logits = node(n).out[0];
      rule_.blocks[logits.id] = rows;
      for (const size_t r : readers_[at(logits)])
        rule_.nodes[r] = dynamic_cast<const ops::TokenLoss*>(node(r).op.get()) ? TensorCut::loss
                                                                               : TensorCut::hits;
    }
    rule_.vocabulary = true;
  }

  const graph::Graph& graph_;
  const int ranks_;
  std::vector<std::vector<size_t>> readers_;  // by value: the nodes that read it
  std::vector<int> root_;                     // by value: another one shared in the same way
  TensorRule rule_;
};

}  // namespace

bool is_linear(const graph::Graph& graph, const graph::Node& node) {
  if (dynamic_cast<const ops::Dense*>(node.op.get())) return graph.shape(node.in[0]).rank() == 2;
  const auto* conv = dynamic_cast<const ops::Conv*>(node.op.get());
  if (!conv || conv->activation() || graph.shape(node.in[1]).elements_from(2) != 1) return false;
  ops::ConvAttributes plain{.spatial = conv->conv().spatial};
  plain.dilation = conv->conv().dilation;
  return conv->conv() == plain;
}

TensorRule find_tensor_rule(const graph::Graph& graph, int ranks) {
  return TensorRuleFinder(graph, ranks).find();
}

}  // namespace tutti::split
