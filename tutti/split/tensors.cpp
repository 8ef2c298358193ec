#include "tutti/split/tensors.h"

#include <utility>

#include <fmt/format.h>

#include "tutti/base/error.h"
#include "tutti/ops/activation.h"
#include "tutti/ops/conv.h"
#include "tutti/ops/dense.h"
#include "tutti/ops/dropout.h"
#include "tutti/ops/elementwise.h"
#include "tutti/ops/rank_rows.h"
#include "tutti/ops/rank_sums.h"
#include "tutti/ops/sequence/attention.h"
#include "tutti/ops/sequence/layer_norm.h"
#include "tutti/ops/sequence/lookup.h"
#include "tutti/ops/sequence/swiglu.h"
#include "tutti/ops/sequence/token_slice.h"
#include "tutti/ops/sequence/waves.h"
#include "tutti/split/split.h"
#include "tutti/split/tensor_rule.h"

namespace tutti::split {
namespace {

/// Returns the layer without its bias.
graph::OpPtr without_bias(const graph::Op& op) {
  if (const auto* dense = dynamic_cast<const ops::Dense*>(&op))
    return std::make_shared<ops::Dense>(false, dense->output());
  return std::make_shared<ops::Conv>(dynamic_cast<const ops::Conv&>(op).conv(), false);
}

/// Whether the op makes the results of a position from its inputs there.
bool works_by_position(const graph::Graph& graph, const graph::Node& node) {
  const graph::Op* op = node.op.get();
  return dynamic_cast<const ops::Activation*>(op) || dynamic_cast<const ops::Add*>(op) ||
         dynamic_cast<const ops::Mul*>(op) || dynamic_cast<const ops::Scale*>(op) ||
         dynamic_cast<const ops::SwiGlu*>(op) || dynamic_cast<const ops::LayerNorm*>(op) ||
         dynamic_cast<const ops::Dropout*>(op) || dynamic_cast<const ops::AddPositions*>(op) ||
         is_linear(graph, node);
}

/// Returns the op for this rank's positions.
graph::OpPtr of_positions(const graph::OpPtr& op, const ops::RankRows& rows) {
  if (const auto* dropout = dynamic_cast<const ops::Dropout*>(op.get()))
    return std::make_shared<ops::Dropout>(dropout->probability(), dropout->salt(),
                                          rows.mine().first, rows.all);
  if (dynamic_cast<const ops::AddPositions*>(op.get()))
    return std::make_shared<ops::AddPositions>(rows.mine().first);
  return op;
}

class TensorSplitter {
 public:
  /// `by_position`: parameters, found by an earlier pass, that each rank uses for its own
  /// positions.
  TensorSplitter(const graph::Graph& old, const PartGrid& grid,
                 const std::vector<graph::Value>& by_position)
      : old_(old), group_{.ranks = grid.tensor(), .me = grid.tensor_place()},
        positions_(grid.positions()), rule_(find_tensor_rule(old, grid.tensor())),
        own_(old.values().size()), by_position_(by_position) {}

  SplitTensors build() {
    of_.resize(old_.values().size());
    find_slices();
    if (made_.slices.empty())
      throw ConfigError(fmt::format(
          "parallel.tensor: {} ranks find no layers to share: there are no two layers, the second "
          "of which alone reads what the first one makes, with {} channels or heads of attention "
          "or more, and no vocabulary",
          group_.ranks, group_.ranks));
    copy_bound();
    for (size_t n = 0; n < old_.nodes().size(); ++n) add_node(n);
    std::vector<graph::Value> whole_of = of_;
    for (size_t i = 0; i < own_.size(); ++i)
      if (own_[i]) whole_of[i] = {};
    for (const graph::Value v : old_.outputs()) {
      whole_of[static_cast<size_t>(v.id)] = whole(v);
      graph().mark_output(whole(v));
    }
    made_.rewritten.of = std::move(whole_of);
    made_.text = text();
    return std::move(made_);
  }
  /// Call this after the graph is built.
  const std::vector<graph::Value>& found_by_position() const { return found_; }

 private:
  graph::Graph& graph() { return made_.rewritten.graph; }
  graph::Value& of(graph::Value v) { return of_[static_cast<size_t>(v.id)]; }
  /// Returns a tag; the one after it is for a gradient.
  int next_tag() { return std::exchange(tag_, tag_ + 2); }

  void slice(graph::Value parameter, int dim, const std::vector<graph::ChannelBlock>& blocks) {
    made_.slices[old_[parameter].name] = {.whole = old_.shape(parameter),
                                          .dim = dim,
                                          .blocks = blocks,
                                          .ranks = group_.ranks,
                                          .me = group_.me};
  }

  void find_slices() {
    for (size_t n = 0; n < old_.nodes().size(); ++n) {
      const graph::Node& node = old_.nodes()[n];
      switch (rule_.nodes[n]) {
        case TensorCut::columns:
          for (size_t i = 1; i < node.in.size(); ++i)
            slice(node.in[i], 0, rule_.blocks.at(node.out[0].id));
          break;
        case TensorCut::rows: slice(node.in[1], 1, rule_.blocks.at(node.in[0].id)); break;
        case TensorCut::lookup: slice(node.in[0], 0, {{old_.shape(node.in[0])[0], 1}}); break;
        case TensorCut::none:
        case TensorCut::inside:
        case TensorCut::loss:
        case TensorCut::hits: break;
      }
    }
  }

  /// Copies the values that the caller binds, in order; shared parameters as this rank's slices.
  void copy_bound() {
    for (size_t i = 0; i < old_.values().size(); ++i) {
      const graph::ValueInfo& info = old_.values()[i];
      if (info.role == graph::Role::table)
        throw ConfigError(
            fmt::format("the model looks rows up in the table '{}': tables are not built for "
                        "parallel.tensor, leave one of them out",
                        info.name));
      const auto part = made_.slices.find(info.name);
      of_[i] = copy_bound_value(
          graph(), info, part == made_.slices.end() ? info.type.desc.shape : part->second.shape());
    }
    if (by_position_.empty()) return;
    std::vector<graph::Value> in;
    for (const graph::Value p : by_position_) in.push_back(of(p));
    const std::vector<graph::Value> out = graph().append(
        "parameters.for_all", std::make_shared<ops::ParametersForAllRanks>(group_, next_tag()), in);
    for (size_t i = 0; i < out.size(); ++i) shared_[by_position_[i].id] = out[i];
  }

  bool is_own(graph::Value v) const { return own_[static_cast<size_t>(v.id)]; }
  ops::RankRows rows_of(graph::Value v) const { return {group_, old_.shape(v)[2]}; }
  /// Whether ranks can share the value's positions.
  bool has_positions(graph::Value v) const {
    const graph::ValueType& type = old_.type(v);
    return positions_ && type.batched && type.desc.shape.rank() == 3 &&
           type.desc.shape[2] >= group_.ranks;
  }
  /// Returns the whole value, for nodes that all ranks compute identically.
  graph::Value whole(graph::Value v) {
    if (!is_own(v)) return of(v);
    graph::Value& made = whole_[v.id];
    if (!made.valid())
      made = ops::all_rows(graph(), old_[v].name + ".whole", rows_of(v), false, next_tag(), of(v));
    return made;
  }
  /// Returns this rank's positions of the value.
  graph::Value own_part(graph::Value v) {
    if (is_own(v)) return of(v);
    graph::Value& made = part_[v.id];
    if (!made.valid())
      made = ops::own_rows(graph(), old_[v].name + ".own", rows_of(v), next_tag(), of(v));
    return made;
  }
  /// Returns a parameter that is used for this rank's positions; an invalid value stays invalid.
  graph::Value parameter(graph::Value p) {
    if (!p.valid()) return p;
    if (std::ranges::find(found_, p) == found_.end()) found_.push_back(p);
    const auto shared = shared_.find(p.id);
    return shared == shared_.end() ? of(p) : shared->second;
  }
  /// Adds up the ranks' parts of the old value `v`, and adds its bias.
  graph::Value add_up(graph::Value v, graph::Value part, graph::Value bias) {
    const std::string name = old_[v].name + ".sum";
    if (!has_positions(v))
      return ops::sum_over_ranks(graph(), name, group_, next_tag(), part,
                                 bias.valid() ? of(bias) : graph::Value{});
    own_[static_cast<size_t>(v.id)] = true;
    return ops::own_rows_of_sum(graph(), name, rows_of(v), next_tag(), part, parameter(bias));
  }
  /// Computes the node for this rank's positions only; false if it needs others, or if none of its
  /// inputs is shared by position.
  bool add_own_positions(const graph::Node& node) {
    const auto fits = [&](graph::Value v) {
      return old_.type(v).batched || old_[v].role == graph::Role::parameter;
    };
    if (!works_by_position(old_, node) || !std::ranges::all_of(node.in, fits) ||
        std::ranges::none_of(node.in, [&](graph::Value v) { return is_own(v); }))
      return false;
    std::vector<graph::Value> in;
    for (const graph::Value v : node.in)
      in.push_back(old_.type(v).batched ? own_part(v) : parameter(v));
    of(node.out[0]) =
        graph().append(node.name, of_positions(node.op, rows_of(node.out[0])), in).front();
    own_[static_cast<size_t>(node.out[0].id)] = true;
    return true;
  }

  /// Returns the value for layers of which each rank makes other channels: one node for all of
  /// them, so that their gradients are added first, and then over ranks.
  graph::Value for_all(graph::Value v) {
    graph::Value& made = for_all_[v.id];
    if (made.valid()) return made;
    const std::string name = old_[v].name + ".for_all";
    return made = is_own(v)
                      ? ops::all_rows(graph(), name, rows_of(v), true, next_tag(), of(v))
                      : graph().append1(
                            name, std::make_shared<ops::ForAllRanks>(group_, next_tag()), {of(v)});
  }

  void add_node(size_t n) {
    const graph::Node& node = old_.nodes()[n];
    switch (rule_.nodes[n]) {
      case TensorCut::rows: of(node.out[0]) = add_rows(node); return;
      case TensorCut::lookup: of(node.out[0]) = add_lookup(node); return;
      case TensorCut::loss: add_loss(node); return;
      case TensorCut::hits: add_hits(node); return;
      case TensorCut::none:
        if (add_own_positions(node)) return;
        break;
      case TensorCut::inside:
      case TensorCut::columns: break;
    }
    std::vector<graph::Value> in;
    for (const graph::Value v : node.in)
      in.push_back(rule_.nodes[n] == TensorCut::columns && v == node.in[0] ? for_all(v) : whole(v));
    const std::vector<graph::Value> out = graph().append(node.name, op_of(node), in);
    for (size_t i = 0; i < out.size(); ++i) of(node.out[i]) = out[i];
  }

  /// Returns the op for this rank's heads.
  graph::OpPtr op_of(const graph::Node& node) const {
    if (!rule_.blocks.contains(node.out[0].id)) return node.op;
    if (const auto* attention = dynamic_cast<const ops::Attention*>(node.op.get())) {
      ops::AttentionAttributes a = attention->attention();
      a.heads /= group_.ranks;
      a.key_heads /= group_.ranks;
      a.first_head = group_.me * a.heads;
      return std::make_shared<ops::Attention>(a);
    }
    if (const auto* rotate = dynamic_cast<const ops::Rotate*>(node.op.get())) {
      ops::RotationAttributes a = rotate->rotation();
      a.heads /= group_.ranks;
      return std::make_shared<ops::Rotate>(a);
    }
    return node.op;
  }

  graph::Value add_rows(const graph::Node& node) {
    const graph::Value part =
        graph().append1(node.name, without_bias(*node.op), {of(node.in[0]), of(node.in[1])});
    return add_up(node.out[0], part, node.in.size() > 2 ? node.in[2] : graph::Value{});
  }

  graph::Value add_lookup(const graph::Node& node) {
    const auto& op = dynamic_cast<const ops::Lookup&>(*node.op);
    const int64_t first = tokens_of(old_.shape(node.in[0])[0]).first;
    const graph::Value part =
        graph().append1(node.name, std::make_shared<ops::Lookup>(op.output(), first),
                        {of(node.in[0]), of(node.in[1])});
    return add_up(node.out[0], part, {});
  }

  ops::VocabularySlice tokens_of(int64_t vocabulary) const {
    const graph::Rows rows =
        graph::rows_of_rank({{vocabulary, 1}}, group_.ranks, group_.me).front();
    return {.first = rows.first, .count = rows.count(), .all = vocabulary};
  }

  void add_loss(const graph::Node& node) {
    const ops::VocabularySlice slice = tokens_of(old_.shape(node.in[0])[1]);
    std::vector<graph::Value> in;
    for (const graph::Value v : node.in) in.push_back(of(v));
    const graph::Value mine = graph().append1(
        node.name + ".statistics", std::make_shared<ops::TokenStatistics>(slice), {in[0], in[1]});
    for (const graph::Value of_rank :
         ops::values_of_ranks(graph(), node.name + ".ranks", group_, next_tag(), mine))
      in.push_back(of_rank);
    const auto& loss = dynamic_cast<const ops::TokenLoss&>(*node.op).loss();
    const std::vector<graph::Value> out = graph().append(
        node.name, std::make_shared<ops::TokenLossOfRanks>(loss, slice, group_.ranks), in);
    for (size_t i = 0; i < node.out.size(); ++i) of(node.out[i]) = out[i];
  }

  void add_hits(const graph::Node& node) {
    const ops::VocabularySlice slice = tokens_of(old_.shape(node.in[0])[1]);
    const graph::Value labels = of(node.in[1]);
    const graph::Value mine = graph().append1(
        node.name + ".rivals", std::make_shared<ops::TokenRivals>(slice), {of(node.in[0]), labels});
    std::vector<graph::Value> in{labels};
    for (const graph::Value of_rank :
         ops::values_of_ranks(graph(), node.name + ".ranks", group_, next_tag(), mine))
      in.push_back(of_rank);
    const auto hits = std::make_shared<ops::TokenHitsOfRanks>(slice.all, group_.ranks);
    of(node.out[0]) = graph().append(node.name, hits, in).front();
  }

  std::string text() const {
    int64_t shared = 0, all = 0;
    for (const graph::Value p : old_.with_role(graph::Role::parameter)) {
      all += old_.shape(p).elements();
      if (made_.slices.contains(old_[p].name)) shared += old_.shape(p).elements();
    }
    return fmt::format(
        "{} ranks share each replica's tensors: {} layers by columns, {} by rows, {} attentions by "
        "heads, {}{}; {:.1f} % of the parameters are in slices, of the others each rank has all",
        group_.ranks, rule_.columns, rule_.rows, rule_.heads,
        rule_.vocabulary ? "embedding and loss by vocabulary" : "no vocabulary",
        positions_ ? ", what is between them by positions" : "",
        100.0 * static_cast<double>(shared) / static_cast<double>(all));
  }

  const graph::Graph& old_;
  const ops::RankGroup group_;
  const bool positions_;
  const TensorRule rule_;
  std::vector<graph::Value> of_;
  std::vector<bool> own_;  // by old value: whether `of_` has only this rank's positions
  std::map<int32_t, graph::Value> for_all_, whole_, part_, shared_;  // by old value
  const std::vector<graph::Value>& by_position_;
  std::vector<graph::Value> found_;
  SplitTensors made_;
  int tag_ = 0;
};

}  // namespace

SplitTensors split_tensors(const graph::Graph& graph, const PartGrid& grid) {
  if (grid.tensor() > 1) {
    const std::vector<graph::Value> none;
    if (!grid.positions()) return TensorSplitter(graph, grid, none).build();
    TensorSplitter first(graph, grid, none);
    (void)first.build();
    if (first.found_by_position().empty())
      throw ConfigError(
          "parallel.sequence: between the layers that ranks share there are no positions of "
          "sequences for each to have its own: leave it out");
    return TensorSplitter(graph, grid, first.found_by_position()).build();
  }
  SplitTensors same{{graph, {}}, {}, {}};
  for (size_t i = 0; i < graph.values().size(); ++i)
    same.rewritten.of.push_back(graph::Value{static_cast<int32_t>(i)});
  return same;
}

}  // namespace tutti::split
