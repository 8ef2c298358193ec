#include "tutti/graph/autodiff.h"

#include <algorithm>

#include <fmt/format.h>

namespace tutti::graph {

std::vector<bool> depends_on(const Graph& graph, std::span<const Value> parameters) {
  std::vector<bool> depends(graph.values().size());
  for (const Value p : parameters) depends[static_cast<size_t>(p.id)] = true;
  for (const Node& node : graph.nodes())
    if (node.op->brings_trained() ||
        std::ranges::any_of(node.in, [&](Value v) { return depends[static_cast<size_t>(v.id)]; }))
      for (const Value v : node.out) depends[static_cast<size_t>(v.id)] = true;
  return depends;
}

namespace {

/// Lists nodes from the last to the first, except that an exchange that begins at once comes as
/// soon as the gradients of its outputs are complete.
std::vector<size_t> backward_order(const Graph& graph) {
  const std::vector<Node>& nodes = graph.nodes();
  std::vector<size_t> first_reader(graph.values().size(), nodes.size());
  for (size_t n = nodes.size(); n-- > 0;)
    for (const Value v : nodes[n].in) first_reader[static_cast<size_t>(v.id)] = n;
  std::vector<std::vector<size_t>> then(nodes.size());  // by node: exchanges that come after it
  std::vector<bool> moved(nodes.size());
  for (size_t n = 0; n < nodes.size(); ++n) {
    if (!nodes[n].op->begins_at_once()) continue;
    size_t first = nodes.size();
    for (const Value v : nodes[n].out)
      first = std::min(first, first_reader[static_cast<size_t>(v.id)]);
    if (first == nodes.size()) continue;
    then[first].push_back(n);
    moved[n] = true;
  }
  std::vector<size_t> order;
  for (size_t n = nodes.size(); n-- > 0;) {
    if (!moved[n]) order.push_back(n);
    order.insert(order.end(), then[n].rbegin(), then[n].rend());
  }
  return order;
}

}  // namespace

std::vector<Value> differentiate(Graph& graph, std::span<const Value> losses,
                                 std::span<const Value> trained, const SumOfGradients& sum,
                                 std::vector<RowGradient>* tables, std::vector<Value>* gradients) {
  const std::vector<bool> wanted = depends_on(graph, trained);
  std::vector<Value> gradient(graph.values().size());  // by forward value
  std::vector<Value> produced;

  for (const size_t n : backward_order(graph)) {
    const Node node = graph.nodes()[n];  // a copy: appending moves the list
    const bool is_loss = std::ranges::any_of(
        node.out, [&](Value v) { return std::ranges::find(losses, v) != losses.end(); });
    std::vector<Value> dout;
    for (const Value v : node.out) dout.push_back(gradient[static_cast<size_t>(v.id)]);
    if (!is_loss && !node.op->gives_to_others() && std::ranges::none_of(dout, &Value::valid))
      continue;

    GradArgs args{graph, node, dout, {}};
    if (const int t = node.op->table(); t >= 0) {
      const auto table = static_cast<size_t>(t);
      if (!tables || !wanted[static_cast<size_t>(node.in[table].id)]) continue;
      graph.mark_output(dout[0]);
      const Value weights = table + 2 < node.in.size() ? node.in[table + 2] : Value{};
      tables->push_back({node.in[table], node.in[table + 1], weights, dout[0], node.op});
      continue;
    }
    for (const Value v : node.in) args.needed.push_back(wanted[static_cast<size_t>(v.id)]);
    if (!node.op->brings_trained() && std::ranges::none_of(args.needed, std::identity{})) continue;
    const std::vector<Value> din = node.op->grad(args);
    CHECK(din.size() == node.in.size(), "{}: gradient rule of '{}'", node.name, node.op->name());
    for (size_t i = 0; i < din.size(); ++i) {
      if (!din[i].valid() || !args.needed[i]) continue;
      Value& slot = gradient[static_cast<size_t>(node.in[i].id)];
      slot = slot.valid() ? sum(graph, slot, din[i]) : din[i];
    }
  }

  for (const Value parameter : trained) {
    if (graph[parameter].role == Role::table) continue;
    const Value g = gradient[static_cast<size_t>(parameter.id)];
    if (!g.valid())
      throw ConfigError(
          fmt::format("parameter '{}' does not influence the loss", graph[parameter].name));
    graph.mark_gradient(g, parameter);
    produced.push_back(parameter);
  }
  std::ranges::sort(produced, {}, [&](Value p) { return gradient[static_cast<size_t>(p.id)].id; });
  if (gradients) *gradients = std::move(gradient);
  return produced;
}

}  // namespace tutti::graph
