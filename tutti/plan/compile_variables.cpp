#include "tutti/plan/compiler.h"

namespace tutti {

void Compiler::place_variables() {
  Variables& variables = plan_.variables;
  if (plan_.options.variables)
    variables = *plan_.options.variables;
  else
    size_variables();
  for (const Value p : graph_.with_role(Role::parameter))
    plan_.places[index_of(p)] = {kParameters, variables.find_parameter(graph_[p].name)->offset, 0};
  for (const Value g : graph_.with_role(Role::gradient))
    plan_.places[index_of(g)] = {kGradients,
                                 variables.find_parameter(graph_[graph_[g].of].name)->offset, 0};
  for (const Value s : graph_.with_role(Role::statistic)) {
    const Variable* variable = variables.find_statistic(graph_[s].name);
    CHECK(variable, "statistic '{}' is not among the variables of the training plan",
          graph_[s].name);
    plan_.places[index_of(s)] = {kStatistics, variable->offset, 0};
  }
  place_state();
  place_scalars_and_inputs();
}

bool Compiler::is_bucket(const Node& n) const {
  return exchange_kind(graph_, n) == ExchangeKind::gradients;
}

std::vector<Value> Compiler::parameter_order() const {
  std::vector<Value> order = graph_.with_role(Role::gradient);
  std::map<int, int> bucket_of;
  for (const Node& n : graph_.nodes())
    if (is_bucket(n))
      for (const Value g : n.in)
        bucket_of.emplace(g.id, static_cast<int>(&n - graph_.nodes().data()));
  std::ranges::sort(order, {}, [&](Value g) {
    return std::pair(bucket_of.contains(g.id) ? bucket_of.at(g.id) : 0,
                     schedule_.order[static_cast<size_t>(graph_[g].producer)]);
  });
  std::vector<Value> parameters;
  for (const Value g : order) parameters.push_back(graph_[g].of);
  for (const Value p : graph_.with_role(Role::parameter))
    if (std::ranges::find(parameters, p) == parameters.end()) parameters.push_back(p);
  return parameters;
}

void Compiler::size_variables() {
  Variables& variables = plan_.variables;
  for (const Value p : parameter_order()) {
    variables.parameters.push_back(
        {graph_[p].name, plan_.descs[index_of(p)], variables.parameter_bytes, graph_[p].init});
    variables.parameter_bytes += aligned(plan_.descs[index_of(p)].bytes());
    if (std::ranges::any_of(graph_.with_role(Role::gradient),
                            [&](Value g) { return graph_[g].of == p; }))
      variables.trained_bytes = variables.parameter_bytes;
  }
  for (const Value s : graph_.with_role(Role::statistic)) {
    variables.statistics.push_back(
        {graph_[s].name, plan_.descs[index_of(s)], variables.statistic_bytes, graph_[s].init});
    variables.statistic_bytes += aligned(plan_.descs[index_of(s)].bytes());
  }
}

void Compiler::place_state() {
  Variables& variables = plan_.variables;
  for (const Value s : graph_.with_role(Role::state)) {
    const std::string& parameter = graph_[graph_[s].of].name;
    const std::string kind =
        graph_[s].name.substr(std::min(graph_[s].name.size(), parameter.size() + 1));
    auto at = std::ranges::find(variables.state_kinds, kind);
    if (at == variables.state_kinds.end()) at = variables.state_kinds.insert(at, kind);
    const auto k = static_cast<size_t>(at - variables.state_kinds.begin());
    plan_.places[index_of(s)] = {
        kState, k * variables.trained_bytes + variables.find_parameter(parameter)->offset, 0};
  }
}

void Compiler::place_scalars_and_inputs() {
  size_t scalars = 0;
  for (const Value s : graph_.with_role(Role::scalar))
    plan_.places[index_of(s)] = {kScalars, 64 * scalars++, 0};
  plan_.inputs = graph_.with_role(Role::input);
  for (size_t i = 0; i < plan_.inputs.size(); ++i) {
    const Value v = plan_.inputs[i];
    plan_.places[index_of(v)] = {plan_.base_of_input(i), 0,
                                 graph_.type(v).batched ? sample_bytes(v) : 0};
  }
}

}  // namespace tutti
