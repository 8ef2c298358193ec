#include "tutti/models/lora.h"

#include <fmt/format.h>

#include "tutti/base/name_pattern.h"
#include "tutti/ops/sequence/sequence.h"

namespace tutti::models {
namespace {

/// Copies a graph and adds LoRA behind its linear layers.
class LoraCopy {
 public:
  LoraCopy(const Graph& old, const LoraSpec& lora)
      : old_(old), lora_(lora), of_(old.values().size()) {}

  void run() {
    for (const graph::Node& node : old_.nodes()) {
      std::vector<Value> in;
      for (const Value v : node.in) in.push_back(of(v));
      const std::vector<Value> out = graph.append(node.name, node.op, in);
      for (size_t i = 0; i < out.size(); ++i) known(node.out[i]) = out[i];
      if (is_linear(node)) {
        layers_.push_back(node.name);
        if (fits_any(lora_.layers, node.name))
          known(node.out[0]) = adapted(node.name, in[0], out[0]);
      }
    }
    for (const std::string& pattern : lora_.layers)
      require_fit("model.lora_layers", pattern, layers_);
    for (const Value v : old_.outputs()) graph.mark_output(of(v));
  }

  /// Values that the caller binds are copied when they are first read.
  Value of(Value v) {
    if (known(v).valid()) return known(v);
    const graph::ValueInfo& info = old_[v];
    CHECK(info.producer < 0, "{} is read before it is made", info.name);
    const TensorDesc& desc = info.type.desc;
    switch (info.role) {
      case graph::Role::parameter:
        return known(v) = graph.parameter(info.name, desc.shape, info.init);
      case graph::Role::statistic:
        return known(v) = graph.statistic(info.name, desc.shape, info.init);
      case graph::Role::table:
        throw ConfigError(fmt::format("model.lora_rank: '{}' is a table", info.name));
      default: return known(v) = graph.input(info.name, desc, info.type.batched);
    }
  }

  Graph graph;

 private:
  Value& known(Value v) { return of_[static_cast<size_t>(v.id)]; }

  /// Returns whether a node is a layer with its own weight that works position by position.
  bool is_linear(const graph::Node& node) const {
    if (node.op->name() != "conv") return false;
    const graph::ValueInfo& weight = old_[node.in[1]];
    const Shape& shape = weight.type.desc.shape;
    return shape.rank() == 3 && shape[2] == 1 && old_.shape(node.in[0])[1] == shape[1] &&
           weight.name == node.name + ".weight";
  }

  Value adapted(const std::string& name, Value x, Value y) {
    const int64_t outputs = graph.shape(y)[1];
    if (lora_.rank > std::min(outputs, graph.shape(x)[1]))
      throw ConfigError(fmt::format("model.lora_rank: {} is above the {} channels of '{}'",
                                    lora_.rank, std::min(outputs, graph.shape(x)[1]), name));
    const Value a =
        ops::linear(graph, name + ".lora_A", x,
                    {.outputs = lora_.rank,
                     .bias = false,
                     .init = {.kind = Init::Kind::uniform_fan_in, .stored = Init::Stored::matrix}});
    const Value b =
        ops::linear(graph, name + ".lora_B", a,
                    {.outputs = outputs,
                     .bias = false,
                     .init = {.kind = Init::Kind::zeros, .stored = Init::Stored::matrix}});
    const double alpha = lora_.alpha > 0 ? lora_.alpha : static_cast<double>(lora_.rank);
    return ops::add(graph, name + ".lora", y,
                    ops::scale(graph, name + ".lora_scaled", b,
                               static_cast<float>(alpha / static_cast<double>(lora_.rank))));
  }

  const Graph& old_;
  const LoraSpec& lora_;
  std::vector<Value> of_;
  std::vector<std::string> layers_;
};

}  // namespace

ModelGraph with_lora(const ModelGraph& model, const LoraSpec& lora) {
  LoraCopy copy(model.graph, lora);
  copy.run();
  ModelGraph made = model;
  for (std::vector<GraphInput>* fields : {&made.inputs, &made.targets})
    for (GraphInput& field : *fields) field.value = copy.of(field.value);
  for (ModelOutput& output : made.outputs) output.prediction = copy.of(output.prediction);
  for (ModelReading& reading : made.readings) reading.value = copy.of(reading.value);
  for (Value& loss : made.losses) loss = copy.of(loss);
  made.graph = std::move(copy.graph);
  return made;
}

}  // namespace tutti::models
