#include "tutti/plan/layouts.h"

#include <algorithm>

#include "tutti/base/error.h"
#include "tutti/plan/step_problem.h"

namespace tutti::plan {
namespace {

/// Returns the result in whose memory the node makes `grown` and that no other node reads; invalid
/// if there is none.
graph::Value grown_from(const graph::Graph& graph, graph::Value grown) {
  const graph::Node& node = graph.nodes()[static_cast<size_t>(graph[grown].producer)];
  const auto output = std::ranges::find(node.out, grown) - node.out.begin();
  const int input = node.op->in_place(static_cast<int>(output));
  if (input < 0) return {};
  const graph::Value v = node.in[static_cast<size_t>(input)];
  const auto reads = [&](const graph::Node& other) { return std::ranges::count(other.in, v); };
  int64_t readers = 0;
  for (const graph::Node& other : graph.nodes()) readers += reads(other);
  const bool is_output = std::ranges::find(graph.outputs(), v) != graph.outputs().end();
  return graph[v].role == graph::Role::result && !graph.type(v).batched && readers == 1 &&
                 !is_output
             ? v
             : graph::Value{};
}

/// Gives a gradient, the results that it takes over, and its parameter the same layout.
void lay_out_gradient(const graph::Graph& graph, graph::Value g, const Layout& layout,
                      graph::PerValue<TensorDesc>& descs) {
  descs[g].layout = descs[graph[g].of].layout = layout;
  for (const graph::Value made : taken_over_by(graph, g)) descs[made].layout = layout;
}

/// Lays out parameters as another plan does.
void take_layouts(const graph::Graph& graph, const Variables& variables,
                  graph::PerValue<TensorDesc>& descs) {
  for (const graph::Value p : graph.with_role(graph::Role::parameter)) {
    const Variable* variable = variables.find_parameter(graph[p].name);
    CHECK(variable, "parameter '{}' is not among the variables of the training plan",
          graph[p].name);
    descs[p] = variable->desc;
  }
  for (const graph::Value g : graph.with_role(graph::Role::gradient))
    lay_out_gradient(graph, g, descs[graph[g].of].layout, descs);
}

/// Gives each gradient, and its parameter, the layout preferred by the kernel that makes it. If the
/// gradient grows in the memory of other results, the kernel that makes the first of them decides.
void choose_layouts(const Plan& plan, const Schedule& schedule, KernelChooser& chooser,
                    graph::PerValue<TensorDesc>& descs) {
  const graph::Graph& graph = plan.graph;
  for (size_t b = 0; b < schedule.bands.size(); ++b)
    for (const int n : schedule.bands[b].nodes) {
      const graph::Node& node = graph.nodes()[static_cast<size_t>(n)];
      for (size_t o = 0; o < node.out.size(); ++o) {
        const graph::Value g = node.out[o];
        if (graph[g].role != graph::Role::gradient || graph[g].producer != n) continue;
        const std::vector<graph::Value> taken = taken_over_by(graph, g);
        const graph::Value made = taken.empty() ? g : taken.back();
        const int maker = graph[made].producer;
        const auto at = static_cast<size_t>(schedule.band_of[static_cast<size_t>(maker)]);
        const std::vector<graph::Value>& outs = graph.nodes()[static_cast<size_t>(maker)].out;
        const auto place = static_cast<size_t>(std::ranges::find(outs, made) - outs.begin());
        Step step = step_of(graph, descs, maker, &plan.bands[at]);
        step.request.out_free[place] = true;
        const backend::KernelCandidate chosen = chooser.pick(step);
        lay_out_gradient(graph, g, chosen.out[place].layout, descs);
      }
    }
}

void size_update_results(const graph::Graph& graph, const Schedule& schedule,
                         graph::PerValue<TensorDesc>& descs) {
  for (const int n : schedule.updates) {
    const graph::Node& node = graph.nodes()[static_cast<size_t>(n)];
    std::vector<graph::ValueType> types;
    for (const graph::Value v : node.in) types.push_back({descs[v], graph.type(v).batched});
    const std::vector<graph::ValueType> results = node.op->infer(types);
    for (size_t o = 0; o < results.size(); ++o) descs[node.out[o]] = results[o].desc;
  }
}

}  // namespace

std::vector<graph::Value> taken_over_by(const graph::Graph& graph, graph::Value gradient) {
  std::vector<graph::Value> taken;
  for (graph::Value v = grown_from(graph, gradient); v.valid(); v = grown_from(graph, v))
    taken.push_back(v);
  return taken;
}

graph::PerValue<TensorDesc> lay_out_activations(const graph::Graph& graph,
                                                const backend::Backend& backend,
                                                const std::string& layout) {
  graph::PerValue<TensorDesc> descs(graph);
  for (size_t i = 0; i < graph.values().size(); ++i) {
    const graph::Value v{static_cast<int32_t>(i)};
    TensorDesc& desc = descs[v] = graph.type(v).desc;
    const bool is_output = std::ranges::find(graph.outputs(), v) != graph.outputs().end();
    if (!graph.type(v).batched || desc.shape.rank() < 3 || is_output) continue;
    for (const Layout& offered : backend.activation_layouts(desc.shape, desc.dtype))
      if (offered.to_string(desc.shape.rank()) == layout) desc.layout = offered;
  }
  return descs;
}

graph::PerValue<TensorDesc> lay_out_variables(const Plan& plan, const Schedule& schedule,
                                              KernelChooser& chooser) {
  const graph::Graph& graph = plan.graph;
  graph::PerValue<TensorDesc> descs = plan.descs;
  if (plan.options.variables)
    take_layouts(graph, *plan.options.variables, descs);
  else
    choose_layouts(plan, schedule, chooser, descs);
  for (const graph::Value s : graph.with_role(graph::Role::state))
    descs[s].layout = descs[graph[s].of].layout;
  size_update_results(graph, schedule, descs);
  return descs;
}

}  // namespace tutti::plan
