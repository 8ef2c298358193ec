#include "tutti/train/optimizer.h"

#include <array>
#include <set>
#include <string>

#include "tutti/base/error.h"
#include "tutti/ops/exchange.h"
#include "tutti/ops/norm_update.h"

namespace tutti {
namespace {

using Kind = OptimizerSettings::Kind;

constexpr std::string_view kBias = ".bias";

/// The ops of one update.
struct UpdateOps {
  std::shared_ptr<const Update> norms;  ///< the first of two; null where there is only one
  std::shared_ptr<const Update> update;
};

UpdateOps update_ops(const OptimizerSettings& s, bool excluded) {
  const double weight_decay = excluded ? 0 : s.weight_decay;
  const LambAttributes lamb{s.beta1, s.beta2, s.eps, weight_decay};
  switch (s.kind) {
    case Kind::lars:
      if (excluded)
        return {nullptr, std::make_shared<SgdUpdate>(SgdAttributes{s.momentum, 0, false})};
      return {std::make_shared<ParameterNorms>(), std::make_shared<LarsUpdate>(LarsAttributes{
                                                      s.momentum, weight_decay, s.trust, s.eps})};
    case Kind::lamb:
      if (excluded)
        return {nullptr,
                std::make_shared<AdamUpdate>(AdamAttributes{s.beta1, s.beta2, s.eps, 0, false})};
      return {std::make_shared<LambMoments>(lamb), std::make_shared<LambUpdate>(lamb)};
    case Kind::adam:
    case Kind::adamw:
      return {nullptr, std::make_shared<AdamUpdate>(AdamAttributes{
                           s.beta1, s.beta2, s.eps, weight_decay, s.kind == Kind::adamw})};
    case Kind::sgd: break;
  }
  return {nullptr,
          std::make_shared<SgdUpdate>(SgdAttributes{s.momentum, weight_decay, s.nesterov})};
}

/// Names of a parameter's states, in the order that the op expects. They are part of checkpoints: a
/// state of another meaning needs another name.
std::vector<std::string_view> state_names(Kind kind, const Update& op) {
  std::vector<std::string_view> names;
  switch (kind) {
    case Kind::sgd:
    case Kind::lars: names = {"momentum"}; break;
    case Kind::adam:
    case Kind::adamw:
    case Kind::lamb: names = {"m", "v"}; break;
  }
  const auto states = static_cast<size_t>(op.states());
  CHECK(states == 0 || states == names.size(), "{} has {} states", op.name(), states);
  names.resize(states);  // SGD without momentum keeps none
  return names;
}

/// One parameter as updates see it.
struct Updated {
  Value w, g;
  std::vector<Value> states;
};

std::vector<Value> inputs_of(const Update& op, std::vector<Value> leading,
                             std::span<const Updated> parameters) {
  std::vector<Value> in = std::move(leading);
  for (const Updated& p : parameters) {
    in.insert(in.end(), {p.w, p.g});
    in.insert(in.end(), p.states.begin(), p.states.begin() + op.states());
  }
  return in;
}

/// Appends the ops of one update of some parameters of a bucket.
void append_update(Graph& graph, int bucket, const std::string& suffix, const UpdateOps& ops,
                   bool sharded, const UpdateScalars& scalars,
                   std::span<const Updated> parameters) {
  std::vector<Value> leading{scalars.learning_rate, scalars.gradient_scale};
  if (ops.norms) {
    const Value sums = graph
                           .append(fmt::format("norms.{}{}", bucket, suffix), ops.norms,
                                   inputs_of(*ops.norms, leading, parameters))
                           .front();
    if (sharded)
      graph.append(fmt::format("sum_norms.{}{}", bucket, suffix),
                   std::make_shared<AllReduceNorms>(bucket), std::array{sums});
    leading.push_back(sums);
  }
  graph.append(fmt::format("update.{}{}", bucket, suffix), ops.update,
               inputs_of(*ops.update, leading, parameters));
}

/// Gradient of each parameter, by the parameter's index.
std::vector<Value> gradients_of(const Graph& graph) {
  std::vector<Value> gradients(graph.values().size());
  for (const Value g : graph.with_role(Role::gradient))
    gradients[static_cast<size_t>(graph[g].of.id)] = g;
  return gradients;
}

void check_buckets(const Graph& graph, std::span<const std::vector<Value>> buckets) {
  std::set<int32_t> seen;
  for (const auto& bucket : buckets)
    for (const Value p : bucket)
      CHECK(graph[p].role == Role::parameter && seen.insert(p.id).second, "bucket entry {}",
            graph[p].name);
  CHECK(seen.size() == graph.with_role(Role::parameter).size(), "{} parameters in buckets",
        seen.size());
}

}  // namespace

bool is_bias(std::string_view name) { return name.ends_with(kBias); }

bool is_norm_parameter(const Graph& graph, Value parameter) {
  const std::string& name = graph[parameter].name;
  if (!is_bias(name)) return graph.shape(parameter).rank() == 1;
  const Value weight = graph.find(name.substr(0, name.size() - kBias.size()) + ".weight");
  return weight.valid() && graph.shape(weight).rank() == 1;
}

UpdateScalars add_update(Graph& graph, std::span<const std::vector<Value>> buckets,
                         const OptimizerSettings& settings) {
  check_buckets(graph, buckets);
  const std::vector<Value> gradients = gradients_of(graph);
  const UpdateScalars scalars{graph.scalar("lr"), graph.scalar("gradient_scale")};
  const bool divided =
      settings.weight_decay != 0 || settings.kind == Kind::lars || settings.kind == Kind::lamb;
  const auto is_excluded = [&](Value p) {
    return divided && ((settings.exclude_bias && is_bias(graph[p].name)) ||
                       (settings.exclude_norm && is_norm_parameter(graph, p)));
  };
  for (size_t b = 0; b < buckets.size(); ++b) {
    for (const bool excluded : {false, true}) {
      const UpdateOps ops = update_ops(settings, excluded);
      std::vector<Updated> parameters;
      for (const Value p : buckets[b]) {
        if (is_excluded(p) != excluded) continue;
        Updated& updated =
            parameters.emplace_back(Updated{p, gradients[static_cast<size_t>(p.id)], {}});
        CHECK(updated.g.valid(), "{} has no gradient", graph[p].name);
        for (const std::string_view state : state_names(settings.kind, *ops.update))
          updated.states.push_back(graph.state(fmt::format("{}.{}", graph[p].name, state), p));
      }
      if (!parameters.empty())
        append_update(graph, static_cast<int>(b), excluded ? ".no_decay" : "", ops,
                      settings.sharded, scalars, parameters);
    }
    if (settings.sharded)
      graph.append(fmt::format("weights.{}", b),
                   std::make_shared<AllGatherWeights>(static_cast<int>(b)), buckets[b]);
  }
  return scalars;
}

}  // namespace tutti
