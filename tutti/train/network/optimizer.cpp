#include "tutti/train/network/optimizer.h"

#include <algorithm>
#include <array>
#include <numeric>
#include <set>
#include <string>
#include <utility>

#include "tutti/base/error.h"
#include "tutti/base/log.h"
#include "tutti/ops/clip.h"
#include "tutti/ops/exchange.h"
#include "tutti/ops/norm_update.h"

namespace tutti::train {
namespace {

using Kind = config::OptimizerKind;

constexpr std::string_view kBias = ".bias";

/// The ops of one update.
struct UpdateOps {
  std::shared_ptr<const ops::Update> norms;  ///< the first of two; null if there is one op
  std::shared_ptr<const ops::Update> update;
};

/// The settings that the parameters of one update share.
struct Group {
  bool excluded = false;
  double decay = 0, rate = 1;
  bool operator==(const Group&) const = default;
};

UpdateOps update_ops(const config::OptimizerSection& s, const Group& group) {
  const double rate = group.rate;
  const ops::LambAttributes lamb{s.beta1, s.beta2, s.eps, group.decay, rate};
  switch (s.name) {
    case Kind::lars:
      if (group.excluded)
        return {nullptr,
                std::make_shared<ops::SgdUpdate>(ops::SgdAttributes{s.momentum, 0, false, rate})};
      return {std::make_shared<ops::ParameterNorms>(),
              std::make_shared<ops::LarsUpdate>(
                  ops::LarsAttributes{s.momentum, group.decay, s.trust, s.eps, rate})};
    case Kind::lamb:
      if (group.excluded)
        return {nullptr, std::make_shared<ops::AdamUpdate>(
                             ops::AdamAttributes{s.beta1, s.beta2, s.eps, 0, false, rate})};
      return {std::make_shared<ops::LambMoments>(lamb), std::make_shared<ops::LambUpdate>(lamb)};
    case Kind::adam:
    case Kind::adamw:
      return {nullptr, std::make_shared<ops::AdamUpdate>(
                           ops::AdamAttributes{s.beta1, s.beta2, s.eps, group.decay,
                                               s.name == Kind::adamw, rate, s.clip_value})};
    case Kind::rmsprop:
      return {nullptr, std::make_shared<ops::RmspropUpdate>(
                           ops::RmspropAttributes{s.rho, s.eps, group.decay, rate, s.clip_value})};
    case Kind::sgd: break;
  }
  return {nullptr, std::make_shared<ops::SgdUpdate>(ops::SgdAttributes{
                       s.momentum, group.decay, s.nesterov, rate, s.clip_value})};
}

/// Finds each parameter's group, and records which lines of decay and rates are used.
class Groups {
 public:
  Groups(const graph::Graph& graph, const config::OptimizerSection& optimizer, bool partial)
      : graph_(graph), optimizer_(optimizer), lines_(parameter_lines(optimizer)), partial_(partial),
        divided_(optimizer.weight_decay != 0 || !lines_.decay.empty() ||
                 optimizer.name == Kind::lars || optimizer.name == Kind::lamb),
        decay_used_(lines_.decay.size()), rate_used_(lines_.rates.size()) {}

  Group of(graph::Value parameter) {
    const std::string& name = graph_[parameter].name;
    names_.push_back(name);
    Group group{.excluded = is_excluded(parameter)};
    group.decay =
        group.excluded ? 0 : chosen(lines_.decay, decay_used_, name, optimizer_.weight_decay);
    group.rate = chosen(lines_.rates, rate_used_, name, 1);
    return group;
  }

  /// Returns "" for a group that only optimizer.weight_decay and optimizer.exclude define.
  std::string suffix(const Group& group) const {
    std::string text = group.excluded ? ".no_decay" : "";
    if (!group.excluded && group.decay != optimizer_.weight_decay)
      text += fmt::format(".decay{}", group.decay);
    return group.rate == 1 ? text : text + fmt::format(".rate{}", group.rate);
  }

  /// Call it after of() has been called for all parameters.
  void require_all_used() const {
    if (partial_) return;
    require_used("optimizer.decay", lines_.decay, decay_used_);
    require_used("optimizer.rates", lines_.rates, rate_used_);
  }

 private:
  bool is_excluded(graph::Value p) const {
    return divided_ && ((excludes("bias") && is_bias(graph_[p].name)) ||
                        (excludes("norm") && is_norm_parameter(graph_, p)));
  }

  bool excludes(std::string_view group) const {
    return std::ranges::find(optimizer_.exclude, group) != optimizer_.exclude.end();
  }

  static double chosen(std::span<const PatternValue> lines, std::vector<bool>& used,
                       const std::string& name, double otherwise) {
    const int line = first_fit(lines, name);
    if (line < 0) return otherwise;
    used[static_cast<size_t>(line)] = true;
    return lines[static_cast<size_t>(line)].value;
  }

  void require_used(std::string_view key, std::span<const PatternValue> lines,
                    const std::vector<bool>& used) const {
    for (size_t i = 0; i < lines.size(); ++i) {
      if (used[i]) continue;
      require_fit(key, lines[i].pattern, all_names());
      const auto fits = [&](const std::string& n) { return fits_pattern(lines[i].pattern, n); };
      if (std::ranges::none_of(names_, fits)) {
        log::warn_once(
            "{}: the line of '{}' decides for no parameter: those that it fits are not trained",
            key, lines[i].pattern);
        continue;
      }
      throw ConfigError(fmt::format(
          "{}: the line of '{}' decides for no parameter: optimizer.exclude or lines before it do",
          key, lines[i].pattern));
    }
  }

  std::vector<std::string> all_names() const {
    std::vector<std::string> names;
    for (const graph::Role role : {graph::Role::parameter, graph::Role::table})
      for (const graph::Value p : graph_.with_role(role)) names.push_back(graph_[p].name);
    return names;
  }

  const graph::Graph& graph_;
  const config::OptimizerSection& optimizer_;
  const ParameterLines lines_;
  const bool partial_;
  const bool divided_;
  std::vector<bool> decay_used_, rate_used_;
  std::vector<std::string> names_;
};

/// Returns the names of a parameter's states, in the order that the op expects. They are part of
/// checkpoints: a state with another meaning needs another name.
std::vector<std::string_view> state_names(Kind kind, const ops::Update& op) {
  std::vector<std::string_view> names;
  switch (kind) {
    case Kind::sgd:
    case Kind::lars: names = {"momentum"}; break;
    case Kind::adam:
    case Kind::adamw:
    case Kind::lamb: names = {"m", "v"}; break;
    case Kind::rmsprop: names = {"square"}; break;
  }
  const auto states = static_cast<size_t>(op.states());
  CHECK(states == 0 || states == names.size(), "{} has {} states", op.name(), states);
  names.resize(states);  // SGD without momentum has none
  return names;
}

/// One parameter as used by updates.
struct Updated {
  graph::Value w, g;
  std::vector<graph::Value> states;
};

std::vector<graph::Value> inputs_of(const ops::Update& op, std::vector<graph::Value> leading,
                                    std::span<const Updated> parameters) {
  std::vector<graph::Value> in = std::move(leading);
  for (const Updated& p : parameters) {
    in.insert(in.end(), {p.w, p.g});
    in.insert(in.end(), p.states.begin(), p.states.begin() + op.states());
  }
  return in;
}

/// The bucket of an update, and the ending of its nodes' names.
struct UpdatePlace {
  int bucket;
  std::string number;
  bool sharded;  ///< shared among ranks
  const graph::TensorSlices& slices;
};

/// Appends block sums of squares, to which every rank contributes.
graph::Value append_sums(graph::Graph& graph, const UpdatePlace& place, const std::string& name,
                         const std::shared_ptr<const ops::Update>& op,
                         const std::vector<graph::Value>& leading,
                         std::span<const Updated> parameters) {
  const graph::Value sums =
      graph.append(name + "." + place.number, op, inputs_of(*op, leading, parameters)).front();
  std::vector<bool> slices;
  for (const Updated& p : parameters) slices.push_back(place.slices.contains(graph[p.w].name));
  if (std::ranges::find(slices, true) == slices.end()) slices.clear();
  if (place.sharded || !slices.empty())
    graph.append("sum_" + name + "." + place.number,
                 std::make_shared<ops::AllReduceNorms>(place.bucket, slices), std::array{sums});
  return sums;
}

/// Appends the ops of one update for some parameters of a bucket.
void append_update(graph::Graph& graph, const UpdatePlace& place, const UpdateOps& ops,
                   const UpdateScalars& scalars, std::span<const Updated> parameters) {
  std::vector<graph::Value> leading{scalars.learning_rate, scalars.gradient_scale};
  if (ops.norms)
    leading.push_back(append_sums(graph, place, "norms", ops.norms, leading, parameters));
  graph.append("update." + place.number, ops.update, inputs_of(*ops.update, leading, parameters));
}

/// Returns the gradient of each parameter, by the parameter's index.
std::vector<graph::Value> gradients_of(const graph::Graph& graph) {
  std::vector<graph::Value> gradients(graph.values().size());
  for (const graph::Value g : graph.with_role(graph::Role::gradient))
    gradients[static_cast<size_t>(graph[g].of.id)] = g;
  return gradients;
}

/// Appends the clipping of the gradient; returns the scalars that its updates use. Parameters are
/// added in the order of their names, whatever their buckets.
UpdateScalars append_clip(graph::Graph& graph, std::span<const std::vector<graph::Value>> buckets,
                          const config::OptimizerSection& optimizer, const UpdateScope& scope,
                          const UpdateScalars& scalars) {
  const std::vector<graph::Value> gradients = gradients_of(graph);
  const auto squares = std::make_shared<ops::GradientSquares>();
  ops::ClipScale::Attributes a{.limit = optimizer.clip_norm, .parameters = {}, .order = {}};
  std::vector<graph::Value> in{scalars.gradient_scale}, parameters;
  for (size_t b = 0; b < buckets.size(); ++b) {
    std::vector<Updated> members;
    for (const graph::Value p : buckets[b])
      members.push_back({p, gradients[static_cast<size_t>(p.id)], {}});
    in.push_back(
        append_sums(graph, {static_cast<int>(b), fmt::format("{}", b), scope.sharded, scope.slices},
                    "squares", squares, {scalars.learning_rate, scalars.gradient_scale}, members));
    a.parameters.push_back(static_cast<int>(buckets[b].size()));
    parameters.insert(parameters.end(), buckets[b].begin(), buckets[b].end());
  }
  in.insert(in.end(), parameters.begin(), parameters.end());
  a.order.resize(parameters.size());
  std::iota(a.order.begin(), a.order.end(), 0);
  std::ranges::sort(a.order, {}, [&](int i) -> const std::string& {
    return graph[parameters[static_cast<size_t>(i)]].name;
  });
  const std::vector<graph::Value> out =
      graph.append("clip", std::make_shared<ops::ClipScale>(a), in);
  return {scalars.learning_rate, out[0], out[1]};
}

void check_buckets(const graph::Graph& graph, std::span<const std::vector<graph::Value>> buckets) {
  std::set<int32_t> seen;
  for (const auto& bucket : buckets)
    for (const graph::Value p : bucket)
      CHECK(graph[p].role == graph::Role::parameter && seen.insert(p.id).second, "bucket entry {}",
            graph[p].name);
  CHECK(seen.size() == graph.with_role(graph::Role::gradient).size(), "{} parameters in buckets",
        seen.size());
}

/// The parameters of a bucket by group: those with weight decay first, then in the order in which
/// the first parameter of each group occurs.
using GroupOfParameters = std::pair<Group, std::vector<graph::Value>>;
std::vector<GroupOfParameters> divide(const std::vector<graph::Value>& bucket, Groups& groups) {
  std::vector<GroupOfParameters> divided;
  for (const graph::Value p : bucket) {
    const Group group = groups.of(p);
    auto at = std::ranges::find(divided, group, &GroupOfParameters::first);
    if (at == divided.end()) at = divided.insert(at, {group, {}});
    at->second.push_back(p);
  }
  std::ranges::stable_sort(divided, {},
                           [](const GroupOfParameters& some) { return some.first.excluded; });
  return divided;
}

}  // namespace

ParameterLines parameter_lines(const config::OptimizerSection& optimizer) {
  const auto parsed = [](std::string_view key, const std::vector<std::string>& lines) {
    std::vector<PatternValue> values;
    for (const std::string& line : lines) values.push_back(parse_pattern_value(key, line));
    return values;
  };
  ParameterLines lines{.decay = parsed("optimizer.decay", optimizer.decay),
                       .rates = parsed("optimizer.rates", optimizer.rates)};
  for (const PatternValue& line : lines.decay)
    if (line.value < 0)
      throw ConfigError(
          fmt::format("optimizer.decay: of '{}' it is {}, below 0", line.pattern, line.value));
  for (const PatternValue& line : lines.rates)
    if (line.value <= 0)
      throw ConfigError(fmt::format(
          "optimizer.rates: the factor of '{}' is {}, and must be above 0; model.freeze leaves "
          "parameters as they are",
          line.pattern, line.value));
  return lines;
}

bool is_bias(std::string_view name) { return name.ends_with(kBias); }

bool is_norm_parameter(const graph::Graph& graph, graph::Value parameter) {
  const std::string& name = graph[parameter].name;
  if (!is_bias(name)) return graph.shape(parameter).rank() == 1;
  const graph::Value weight = graph.find(name.substr(0, name.size() - kBias.size()) + ".weight");
  return weight.valid() && graph.shape(weight).rank() == 1;
}

UpdateScalars add_update(graph::Graph& graph, std::span<const std::vector<graph::Value>> buckets,
                         const config::OptimizerSection& optimizer, const UpdateScope& scope) {
  check_buckets(graph, buckets);
  const std::vector<graph::Value> gradients = gradients_of(graph);
  const UpdateScalars given{graph.scalar("lr"), graph.scalar("gradient_scale"), {}};
  const UpdateScalars scalars =
      optimizer.clip_norm > 0 ? append_clip(graph, buckets, optimizer, scope, given) : given;
  Groups groups(graph, optimizer, scope.partial);
  const auto average = std::make_shared<ops::WeightAverage>(
      ops::WeightAverageAttributes{optimizer.ema, optimizer.ema_from});
  for (size_t b = 0; b < buckets.size(); ++b) {
    for (const auto& [group, members] : divide(buckets[b], groups)) {
      const UpdateOps ops = update_ops(optimizer, group);
      std::vector<Updated> parameters, averaged;
      for (const graph::Value p : members) {
        const graph::Value g = gradients[static_cast<size_t>(p.id)];
        CHECK(g.valid(), "{} has no gradient", graph[p].name);
        Updated& updated = parameters.emplace_back(Updated{p, g, {}});
        for (const std::string_view state : state_names(optimizer.name, *ops.update))
          updated.states.push_back(graph.state(fmt::format("{}.{}", graph[p].name, state), p));
        if (optimizer.ema > 0)
          averaged.push_back(
              {p, g, {graph.state(fmt::format("{}.{}", graph[p].name, kAverageState), p)}});
      }
      const std::string number = fmt::format("{}{}", b, groups.suffix(group));
      append_update(graph, {static_cast<int>(b), number, scope.sharded, scope.slices}, ops, scalars,
                    parameters);
      if (optimizer.ema > 0)
        graph.append(
            "average." + number, average,
            inputs_of(*average, {scalars.learning_rate, scalars.gradient_scale}, averaged));
    }
    if (scope.sharded)
      graph.append(fmt::format("weights.{}", b),
                   std::make_shared<ops::AllGatherWeights>(static_cast<int>(b)), buckets[b]);
  }
  groups.require_all_used();
  return {given.learning_rate, given.gradient_scale, scalars.gradient_norm};
}

}  // namespace tutti::train
