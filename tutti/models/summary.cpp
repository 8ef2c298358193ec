#include "tutti/models/summary.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "tutti/models/registry.h"

namespace tutti::models {
namespace {

Shape sample_of(const graph::ValueType& type) {
  const Shape& shape = type.desc.shape;
  return type.batched ? Shape(std::span(shape.begin() + 1, shape.end())) : shape;
}

LayerSummary layer_of(const Graph& graph, const graph::Node& node) {
  const std::string attributes = node.op->attributes();
  LayerSummary layer{
      .name = node.name,
      .op = std::string(node.op->name()) + (attributes.empty() ? "" : " " + attributes),
      .output = sample_of(graph.type(node.out.front())),
      .flop = graph.flop(node)};
  for (const Value v : node.in)
    if (graph[v].role == graph::Role::parameter || graph[v].role == graph::Role::table)
      layer.parameters += graph.shape(v).elements();
  return layer;
}

double training_flop(ModelSpec spec) {
  spec.mode = ops::Mode::train;
  ModelGraph m = build_model(spec);
  ops::differentiate(m.graph, m.losses);
  double flop = 0;
  for (const graph::Node& node : m.graph.nodes()) flop += m.graph.flop(node);
  return flop;
}

}  // namespace

ModelSummary summarise(const ModelSpec& given) {
  ModelSpec spec = completed(given);
  spec.batch = 1;
  spec.mode = ops::Mode::eval;
  const Graph graph = build_model(spec).graph;
  ModelSummary summary{.name = spec.name,
                       .description = find_model(spec.name).description,
                       .input = spec.input,
                       .task = *objectives_of(spec).front().task,
                       .classes = spec.classes};
  for (const graph::Node& node : graph.nodes()) {
    summary.layers.push_back(layer_of(graph, node));
    summary.forward_flop += summary.layers.back().flop;
  }
  summary.parameters = graph.parameter_count();
  for (const Value v : graph.with_role(graph::Role::statistic))
    summary.statistics += graph.shape(v).elements();
  summary.training_flop = training_flop(spec);
  return summary;
}

std::string with_unit(double value) {
  constexpr std::array<const char*, 6> kUnits = {"", " k", " M", " G", " T", " P"};
  size_t unit = 0;
  while (std::abs(value) >= 999.5 && unit + 1 < kUnits.size()) {
    value /= 1000;
    ++unit;
  }
  if (unit == 0 && value == std::floor(value)) return fmt::format("{:.0f}", value);
  const int decimals = std::abs(value) >= 99.95 ? 0 : std::abs(value) >= 9.995 ? 1 : 2;
  return fmt::format("{:.{}f}{}", value, decimals, kUnits[unit]);
}

std::string to_text(const ModelSummary& s) {
  size_t name_width = 5, op_width = 9;
  for (const LayerSummary& layer : s.layers) {
    name_width = std::max(name_width, layer.name.size());
    op_width = std::max(op_width, std::min<size_t>(layer.op.size(), 48));
  }
  const char* outputs = s.task == TaskKind::regress    ? s.classes == 1 ? "output" : "outputs"
                        : s.task == TaskKind::language ? "tokens"
                                                       : "classes";
  std::string text = fmt::format("{}: {}\ninput {}, {} {}\n\n", s.name, s.description, s.input,
                                 s.classes, outputs);
  text += fmt::format("{:<{}}  {:<{}}  {:>12}  {:>12}  {:>9}\n", "layer", name_width, "operation",
                      op_width, "output", "parameters", "FLOP");
  for (const LayerSummary& layer : s.layers)
    text += fmt::format("{:<{}}  {:<{}}  {:>12}  {:>12}  {:>9}\n", layer.name, name_width, layer.op,
                        op_width, layer.output, layer.parameters,
                        layer.flop > 0 ? with_unit(layer.flop) : "");
  text += fmt::format("\nparameters {}, running averages {}\n", s.parameters, s.statistics);
  text += fmt::format(
      "FLOP per sample: {} forward, {} forward and backward (convolutions and dense layers; "
      "multiply and add are two)\n",
      with_unit(s.forward_flop), with_unit(s.training_flop));
  return text;
}

}  // namespace tutti::models
