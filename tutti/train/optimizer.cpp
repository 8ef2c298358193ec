#include "tutti/train/optimizer.h"

#include <set>
#include <string>

#include "tutti/base/error.h"
#include "tutti/ops/update.h"

namespace tutti {
namespace {

using Kind = OptimizerSettings::Kind;

constexpr std::string_view kBias = ".bias";

std::shared_ptr<const Update> update_op(const OptimizerSettings& s, bool excluded) {
  const float weight_decay = excluded ? 0 : s.weight_decay;
  switch (s.kind) {
    case Kind::lars:
      if (!excluded) return std::make_shared<LarsUpdate>(LarsAttributes{s.momentum, weight_decay, s.trust, s.eps});
      return std::make_shared<SgdUpdate>(SgdAttributes{s.momentum, 0, false});
    case Kind::adam:
    case Kind::adamw: return std::make_shared<AdamUpdate>(AdamAttributes{s.beta1, s.beta2, s.eps, weight_decay, s.kind == Kind::adamw});
    case Kind::sgd: break;
  }
  return std::make_shared<SgdUpdate>(SgdAttributes{s.momentum, weight_decay, s.nesterov});
}

/// Names of a parameter's states, in the order that the op expects.
std::vector<std::string_view> state_names(const Update& op) {
  if (op.states() == 0) return {};
  if (op.states() == 1) return {"momentum"};
  return {"m", "v"};
}

/// Gradient of each parameter, by the parameter's index.
std::vector<Value> gradients_of(const Graph& graph) {
  std::vector<Value> gradients(graph.values().size());
  for (const Value g : graph.with_role(Role::gradient)) gradients[static_cast<size_t>(graph[g].of.id)] = g;
  return gradients;
}

void check_buckets(const Graph& graph, std::span<const std::vector<Value>> buckets) {
  std::set<int32_t> seen;
  for (const auto& bucket : buckets)
    for (const Value p : bucket) CHECK(graph[p].role == Role::parameter && seen.insert(p.id).second, "bucket entry {}", graph[p].name);
  CHECK(seen.size() == graph.with_role(Role::parameter).size(), "{} parameters in buckets", seen.size());
}

}  // namespace

bool is_bias(std::string_view name) { return name.ends_with(kBias); }

bool is_norm_parameter(const Graph& graph, Value parameter) {
  const std::string& name = graph[parameter].name;
  if (!is_bias(name)) return graph.shape(parameter).rank() == 1;
  const Value weight = graph.find(name.substr(0, name.size() - kBias.size()) + ".weight");
  return weight.valid() && graph.shape(weight).rank() == 1;
}

UpdateScalars add_update(Graph& graph, std::span<const std::vector<Value>> buckets, const OptimizerSettings& settings) {
  check_buckets(graph, buckets);
  const std::vector<Value> gradients = gradients_of(graph);
  const UpdateScalars scalars{graph.scalar("lr"), graph.scalar("gradient_scale")};
  const bool divided = settings.weight_decay != 0 || settings.kind == Kind::lars;
  const auto is_excluded = [&](Value p) {
    return divided && ((settings.exclude_bias && is_bias(graph[p].name)) || (settings.exclude_norm && is_norm_parameter(graph, p)));
  };
  for (size_t b = 0; b < buckets.size(); ++b)
    for (const bool excluded : {false, true}) {
      const auto op = update_op(settings, excluded);
      std::vector<Value> in{scalars.learning_rate, scalars.gradient_scale};
      for (const Value p : buckets[b]) {
        if (is_excluded(p) != excluded) continue;
        CHECK(gradients[static_cast<size_t>(p.id)].valid(), "{} has no gradient", graph[p].name);
        in.insert(in.end(), {p, gradients[static_cast<size_t>(p.id)]});
        for (const std::string_view state : state_names(*op)) in.push_back(graph.state(fmt::format("{}.{}", graph[p].name, state), p));
      }
      if (in.size() > Update::kScalars) graph.append(fmt::format("update.{}{}", b, excluded ? ".no_decay" : ""), op, in);
    }
  return scalars;
}

}  // namespace tutti
