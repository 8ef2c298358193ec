#include "tutti/split/stages.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include <fmt/format.h>

#include "tutti/base/error.h"
#include "tutti/ops/parts.h"
#include "tutti/split/split.h"

namespace tutti::split {
namespace {

constexpr int kStageTag = 14'000;  // behind the tags of parts of samples; gradients have odd tags
// Operations of a core in the time in which a byte arrives from another rank of its node.
constexpr double kFlopPerByte = 16;

bool is_variable(graph::Role role) {
  return role == graph::Role::parameter || role == graph::Role::statistic;
}

double flop_of_node(const graph::Graph& graph, const graph::Node& node) {
  std::vector<graph::ValueType> in, out;
  for (const graph::Value v : node.in) in.push_back(graph.type(v));
  for (const graph::Value v : node.out) out.push_back(graph.type(v));
  return node.op->flop(in, out);
}

/// Lists the nodes that read each value, in order.
std::vector<std::vector<size_t>> readers_by_value(const graph::Graph& graph) {
  std::vector<std::vector<size_t>> readers(graph.values().size());
  for (size_t n = 0; n < graph.nodes().size(); ++n)
    for (const graph::Value v : graph.nodes()[n].in)
      readers[static_cast<size_t>(v.id)].push_back(n);
  return readers;
}

/// Returns for each value whether it depends on a variable, and not only on values that the caller
/// binds.
std::vector<bool> computed(const graph::Graph& graph) {
  std::vector<bool> depends(graph.values().size());
  for (size_t v = 0; v < depends.size(); ++v) depends[v] = is_variable(graph.values()[v].role);
  for (const graph::Node& node : graph.nodes())
    if (std::ranges::any_of(node.in,
                            [&](graph::Value v) { return depends[static_cast<size_t>(v.id)]; }))
      for (const graph::Value v : node.out) depends[static_cast<size_t>(v.id)] = true;
  return depends;
}

/// Finds where to cut. Position c is before node c.
class StageCutter {
 public:
  explicit StageCutter(const graph::Graph& graph)
      : graph_(graph), readers_(readers_by_value(graph)) {
    const size_t nodes = graph.nodes().size();
    bytes_.assign(nodes + 1, 0);
    std::vector<bool> divides(nodes + 1);  // no cut: among readers of a statistic or a sum
    const auto over = [](size_t first, size_t last, auto&& apply) {
      for (size_t c = first + 1; c <= last; ++c) apply(c);
    };
    const std::vector<bool> is_computed = computed(graph);
    for (size_t v = 0; v < readers_.size(); ++v) {
      if (readers_[v].empty()) continue;
      const graph::ValueInfo& info = graph.values()[v];
      const size_t last = readers_[v].back();
      if (info.producer >= 0)
        over(static_cast<size_t>(info.producer), last,
             [&](size_t c) { bytes_[c] += static_cast<double>(info.type.desc.bytes()); });
      // Gradient rules of batch norms read the values from which their statistics are made.
      if (info.producer >= 0 && !info.type.batched && is_computed[v])
        over(static_cast<size_t>(info.producer), last, [&](size_t c) { divides[c] = true; });
      else if (is_variable(info.role))
        over(readers_[v].front(), last, [&](size_t c) {
          if (info.role == graph::Role::statistic)
            divides[c] = true;
          else  // both stages have it, and its gradient crosses
            bytes_[c] += static_cast<double>(info.type.desc.bytes());
        });
    }
    // Values that the caller reads are plain, whatever the layout of activations is.
    for (const graph::Value v : graph.outputs())
      if (const int producer = graph[v].producer; producer >= 0 && !readers_[index(v)].empty())
        over(static_cast<size_t>(producer), readers_[index(v)].back(),
             [&](size_t c) { divides[c] = true; });
    flop_before_.push_back(0);
    layers_before_.push_back(0);
    for (const graph::Node& node : graph.nodes()) {
      const double flop = flop_of_node(graph, node);
      const bool is_layer = flop > 0 && std::ranges::any_of(node.in, [&](graph::Value v) {
                              return graph[v].role == graph::Role::parameter;
                            });
      flop_before_.push_back(flop_before_.back() + flop);
      layers_before_.push_back(layers_before_.back() + (is_layer ? 1 : 0));
    }
    places_.push_back(0);
    for (size_t c = 1; c < nodes; ++c)
      if (!divides[c] && layers(0, c) > 0 && layers(c, nodes) > 0) places_.push_back(c);
    places_.push_back(nodes);
  }

  /// Returns where each stage begins, and the end.
  std::vector<size_t> cut(int stages) const {
    struct Best {
      double slowest = std::numeric_limits<double>::infinity(), bytes = 0;
      size_t from = 0;
      bool operator<(const Best& other) const {
        return std::pair(slowest, bytes) < std::pair(other.slowest, other.bytes);
      }
    };
    const size_t count = places_.size();
    // best[s][i]: the first s stages end at place i.
    std::vector<std::vector<Best>> best(static_cast<size_t>(stages) + 1, std::vector<Best>(count));
    best[0][0].slowest = 0;
    for (size_t s = 1; s < best.size(); ++s)
      for (size_t i = s; i < count; ++i)
        for (size_t from = s - 1; from < i; ++from) {
          if (layers(places_[from], places_[i]) == 0) continue;
          const Best& before = best[s - 1][from];
          const Best made{std::max(before.slowest, cost(places_[from], places_[i])),
                          before.bytes + bytes_[places_[from]], from};
          if (made < best[s][i]) best[s][i] = made;
        }
    if (!std::isfinite(best.back().back().slowest))
      throw ConfigError(
          fmt::format("parallel.pipeline = {}: the network has {} layers with parameters, and too "
                      "few places to cut between them: take fewer stages",
                      stages, layers_before_.back()));
    std::vector<size_t> cuts{places_.back()};
    size_t at = count - 1;
    for (size_t s = best.size() - 1; s > 0; --s) {
      at = best[s][at].from;
      cuts.push_back(places_[at]);
    }
    std::ranges::reverse(cuts);
    return cuts;
  }

 private:
  static size_t index(graph::Value v) { return static_cast<size_t>(v.id); }
  int layers(size_t first, size_t last) const {
    return layers_before_[last] - layers_before_[first];
  }
  double cost(size_t first, size_t last) const {
    return flop_before_[last] - flop_before_[first] + kFlopPerByte * bytes_[first];
  }

  const graph::Graph& graph_;
  const std::vector<std::vector<size_t>> readers_;
  std::vector<double> bytes_;        // by position: of values made before it and read behind it
  std::vector<double> flop_before_;  // by position
  std::vector<int> layers_before_;   // by position: nodes with operations and a parameter
  std::vector<size_t> places_;       // possible cuts, including the beginning and the end
};

/// Makes the graph of one stage.
class StageTaker {
 public:
  StageTaker(const graph::Graph& old, const Stages& cut, int stage,
             const std::vector<bool>& trained)
      : old_(old), cut_(cut), stage_(stage), trained_(trained), readers_(readers_by_value(old)) {
    made_.of.resize(old.values().size());
  }

  ops::Rewritten take() {
    copy_bound();
    receive(true);
    receive(false);
    for (size_t n = 0; n < old_.nodes().size(); ++n) {
      if (cut_.of_node[n] != stage_) continue;
      const graph::Node& node = old_.nodes()[n];
      std::vector<graph::Value> in;
      for (const graph::Value v : node.in) in.push_back(of(v));
      const std::vector<graph::Value> out = made_.graph.append(node.name, node.op, in);
      for (size_t i = 0; i < out.size(); ++i) of(node.out[i]) = out[i];
    }
    send(true);
    send(false);
    for (const graph::Value v : old_.outputs())
      if (old_[v].producer >= 0 && maker(v) == stage_) made_.graph.mark_output(of(v));
    return std::move(made_);
  }

 private:
  graph::Value& of(graph::Value v) { return made_.of[static_cast<size_t>(v.id)]; }
  int maker(graph::Value v) const { return cut_.of_node[static_cast<size_t>(old_[v].producer)]; }
  bool is_trained(graph::Value v) const {
    return !trained_.empty() && trained_[static_cast<size_t>(v.id)];
  }
  bool reads(int stage, graph::Value v) const {
    return std::ranges::any_of(readers_[static_cast<size_t>(v.id)],
                               [&](size_t n) { return cut_.of_node[n] == stage; });
  }
  /// Calls look(v) for results that have a gradient, or for those that have none, in order.
  template <class Look>
  void for_results(bool trained, Look look) const {
    for (size_t i = 0; i < old_.values().size(); ++i) {
      const graph::Value v{static_cast<int32_t>(i)};
      if (old_[v].producer >= 0 && is_trained(v) == trained) look(v);
    }
  }
  int tag(bool trained) const { return trained ? kStageTag : kStageTag + 2; }

  void copy_bound() {
    graph::Graph& graph = made_.graph;
    for (size_t i = 0; i < old_.values().size(); ++i) {
      const graph::Value v{static_cast<int32_t>(i)};
      if (!reads(stage_, v)) continue;
      const graph::ValueInfo& info = old_[v];
      if (info.role == graph::Role::table)
        throw ConfigError(fmt::format(
            "the model looks rows up in the table '{}', which all ranks share: parallel.pipeline "
            "is not built together with tables",
            info.name));
      of(v) = copy_bound_value(graph, info, info.type.desc.shape);
    }
  }

  void receive(bool trained) {
    std::vector<ops::ExchangeParts::Get> gets;
    std::vector<graph::Value> got;
    for_results(trained, [&](graph::Value v) {
      if (maker(v) >= stage_ || !reads(stage_, v)) return;
      gets.push_back({maker(v), old_.type(v)});
      got.push_back(v);
    });
    if (gets.empty()) return;
    const std::vector<graph::Value> out = made_.graph.append(
        fmt::format("stage{}.receive{}", stage_, trained ? "" : "_constants"),
        std::make_shared<ops::ExchangeStages>(tag(trained), std::vector<ops::ExchangeParts::Give>(),
                                              gets, !trained),
        {});
    for (size_t i = 0; i < out.size(); ++i) of(got[i]) = out[i];
  }

  void send(bool trained) {
    std::vector<ops::ExchangeParts::Give> gives;
    std::vector<graph::Value> given;
    for_results(trained, [&](graph::Value v) {
      if (maker(v) != stage_) return;
      for (int later = stage_ + 1; later < cut_.count; ++later) {
        if (!reads(later, v)) continue;
        gives.push_back({static_cast<int>(given.size()), later});
        given.push_back(of(v));
      }
    });
    if (gives.empty()) return;
    made_.graph.append(fmt::format("stage{}.send{}", stage_, trained ? "" : "_constants"),
                       std::make_shared<ops::ExchangeStages>(
                           tag(trained), gives, std::vector<ops::ExchangeParts::Get>(), !trained),
                       given);
  }

  const graph::Graph& old_;
  const Stages& cut_;
  const int stage_;
  const std::vector<bool>& trained_;
  const std::vector<std::vector<size_t>> readers_;
  ops::Rewritten made_;
};

}  // namespace

Stages cut_into_stages(const graph::Graph& forward, int stages) {
  const std::vector<size_t> cuts = StageCutter(forward).cut(stages);
  Stages made{.count = stages, .of_node = {}, .of_variable = {}};
  for (int stage = 0; stage < stages; ++stage) {
    const auto s = static_cast<size_t>(stage);
    made.of_node.insert(made.of_node.end(), cuts[s + 1] - cuts[s], stage);
  }
  for (size_t n = 0; n < forward.nodes().size(); ++n)
    for (const graph::Value v : forward.nodes()[n].in)
      if (is_variable(forward[v].role)) {
        std::vector<int>& of = made.of_variable[forward[v].name];
        if (std::ranges::find(of, made.of_node[n]) == of.end()) of.push_back(made.of_node[n]);
      }
  return made;
}

Stages stages_like(const graph::Graph& forward, const Stages& cut) {
  Stages made{.count = cut.count, .of_node = {}, .of_variable = cut.of_variable};
  for (const graph::Node& node : forward.nodes()) {
    int stage = 0;
    for (const graph::Value v : node.in)
      if (const int producer = forward[v].producer; producer >= 0)
        stage = std::max(stage, made.of_node[static_cast<size_t>(producer)]);
    for (const graph::Value v : node.in) {
      const auto known = cut.of_variable.find(forward[v].name);
      if (!is_variable(forward[v].role) || known == cut.of_variable.end()) continue;
      const auto first = std::ranges::lower_bound(known->second, stage);
      stage = first == known->second.end() ? known->second.back() : *first;
    }
    made.of_node.push_back(stage);
  }
  return made;
}

ops::Rewritten take_stage(const graph::Graph& forward, const Stages& cut, int stage,
                          const std::vector<bool>& trained) {
  return StageTaker(forward, cut, stage, trained).take();
}

int batches_under_way(PipelineOrder order, int stages, int stage, int batches) {
  if (stage + 1 == stages) return 1;
  return order == PipelineOrder::gpipe ? batches : std::min(batches, stages - stage);
}

double pipeline_bubble(int stages, int batches) {
  return static_cast<double>(stages - 1) / static_cast<double>(batches + stages - 1);
}

}  // namespace tutti::split
