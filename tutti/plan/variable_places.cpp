#include "tutti/plan/variable_places.h"

#include <algorithm>
#include <string>
#include <utility>

#include "tutti/base/error.h"
#include "tutti/plan/exchange_kind.h"
#include "tutti/plan/memory.h"
#include "tutti/plan/tiles.h"

namespace tutti::plan {
namespace {

/// Lists trained parameters in the order of their arena.
std::vector<graph::Value> trained_parameters(const graph::Graph& graph, const Schedule& schedule) {
  std::vector<graph::Value> gradients = graph.with_role(graph::Role::gradient);
  graph::PerValue<int> bucket_of(graph);  // the node that sums the gradient; 0: none
  for (size_t n = 0; n < graph.nodes().size(); ++n)
    if (exchange_kind(graph, graph.nodes()[n]) == ExchangeKind::gradients)
      for (const graph::Value g : graph.nodes()[n].in)
        if (bucket_of[g] == 0) bucket_of[g] = static_cast<int>(n);
  std::ranges::sort(gradients, {}, [&](graph::Value g) {
    return std::pair(bucket_of[g], schedule.order[static_cast<size_t>(graph[g].producer)]);
  });
  std::vector<graph::Value> parameters;
  for (const graph::Value g : gradients) parameters.push_back(graph[g].of);
  return parameters;
}

/// Returns KIND of a state named "PARAMETER.KIND".
std::string kind_of(const graph::Graph& graph, graph::Value state) {
  const std::string &name = graph[state].name, &parameter = graph[graph[state].of].name;
  return name.substr(std::min(name.size(), parameter.size() + 1));
}

/// Returns the place at the parameter's offset in the arena of the state's kind.
Place place_of_state(const graph::Graph& graph, const Variables& variables, graph::Value state) {
  const auto kind = std::ranges::find(variables.state_kinds, kind_of(graph, state));
  CHECK(kind != variables.state_kinds.end(), "state '{}' is not among the variables of the plan",
        graph[state].name);
  const auto k = static_cast<size_t>(kind - variables.state_kinds.begin());
  const Variable* parameter = variables.find_parameter(graph[graph[state].of].name);
  return {kState, k * variables.trained_bytes + parameter->offset, 0};
}

}  // namespace

Variables size_arenas(const Plan& plan, const Schedule& schedule) {
  const graph::Graph& graph = plan.graph;
  Variables variables;
  const auto add_parameter = [&](graph::Value p) {
    variables.parameters.push_back(
        {graph[p].name, plan.desc(p), variables.parameter_bytes, graph[p].init, {}});
    variables.parameter_bytes += aligned(plan.desc(p).bytes());
  };
  const std::vector<graph::Value> trained = trained_parameters(graph, schedule);
  std::ranges::for_each(trained, add_parameter);
  variables.trained_bytes = variables.parameter_bytes;
  for (const graph::Value p : graph.with_role(graph::Role::parameter))
    if (std::ranges::find(trained, p) == trained.end()) add_parameter(p);
  for (const graph::Value t : graph.with_role(graph::Role::table)) {
    variables.tables.push_back(
        {{graph[t].name, plan.desc(t), variables.table_bytes, graph[t].init, {}},
         graph[t].rows,
         graph[t].of.valid()});
    variables.table_bytes += aligned(plan.desc(t).bytes());
  }
  for (const graph::Value s : graph.with_role(graph::Role::statistic)) {
    variables.statistics.push_back(
        {graph[s].name, plan.desc(s), variables.statistic_bytes, graph[s].init, {}});
    variables.statistic_bytes += aligned(plan.desc(s).bytes());
  }
  for (const graph::Value s : graph.with_role(graph::Role::state))
    if (const std::string kind = kind_of(graph, s);
        std::ranges::find(variables.state_kinds, kind) == variables.state_kinds.end())
      variables.state_kinds.push_back(kind);
  return variables;
}

graph::PerValue<Place> variable_places(const Plan& plan) {
  const graph::Graph& graph = plan.graph;
  const Variables& variables = plan.variables;
  graph::PerValue<Place> places(graph);
  for (const graph::Value p : graph.with_role(graph::Role::parameter))
    places[p] = {kParameters, variables.find_parameter(graph[p].name)->offset, 0};
  for (const graph::Value t : graph.with_role(graph::Role::table)) {
    const TableVariable* table = variables.find_table(graph[t].name);
    CHECK(table, "table '{}' is not among the variables of the training plan", graph[t].name);
    places[t] = {kTables, table->variable.offset, 0};
  }
  for (const graph::Value g : graph.with_role(graph::Role::gradient))
    places[g] = {kGradients, variables.find_parameter(graph[graph[g].of].name)->offset, 0};
  for (const graph::Value s : graph.with_role(graph::Role::statistic)) {
    const Variable* variable = variables.find_statistic(graph[s].name);
    CHECK(variable, "statistic '{}' is not among the variables of the training plan",
          graph[s].name);
    places[s] = {kStatistics, variable->offset, 0};
  }
  for (const graph::Value s : graph.with_role(graph::Role::state))
    places[s] = place_of_state(graph, variables, s);
  size_t scalars = 0;
  for (const graph::Value s : graph.with_role(graph::Role::scalar))
    places[s] = {kScalars, kAlignment * scalars++, 0};
  for (size_t i = 0; i < plan.inputs.size(); ++i) {
    const graph::Value v = plan.inputs[i];
    places[v] = {plan.base_of_input(i), 0,
                 graph.type(v).batched ? bytes_of_sample(plan.desc(v)) : 0};
  }
  return places;
}

}  // namespace tutti::plan
