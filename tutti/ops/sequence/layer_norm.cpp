#include "tutti/ops/sequence/layer_norm.h"

#include "tutti/ops/shape_check.h"

namespace tutti::ops {
namespace {

void require_norm(std::string_view op, const LayerNormAttributes& a, const graph::ValueType& x,
                  graph::Types channels) {
  require_batched(op, x, 2);
  require(a.epsilon > 0, "{}: epsilon is {}, it must be positive", op, a.epsilon);
  for (const graph::ValueType& each : channels)
    require(
        each.desc.shape == Shape{x.desc.shape[1]} && each.desc.dtype == DType::f32 && !each.batched,
        "{}: {} for x {}: one f32 number for each of {} channels is needed", op,
        each.desc.to_string(), x.desc.to_string(), x.desc.shape[1]);
}

}  // namespace

std::string_view name_of(LayerNormKind kind) {
  return kind == LayerNormKind::layer ? "layer" : "rms";
}

std::string LayerNormAttributes::to_string() const {
  return fmt::format("{} epsilon {}", name_of(kind), epsilon);
}

std::vector<graph::ValueType> LayerNorm::infer(graph::Types in) const {
  require_inputs(name(), in, a_.has_beta() ? 3 : 2);
  require_norm(name(), a_, in[0], in.subspan(1));
  return {in[0]};
}

std::vector<graph::Value> LayerNorm::grad(const graph::GradArgs& args) const {
  const graph::Node& node = args.node;
  return args.graph.append(node.name + ".dx", std::make_shared<LayerNormGrad>(a_),
                           std::vector<graph::Value>{args.dout[0], node.in[0], node.in[1]});
}

std::vector<graph::ValueType> LayerNormGrad::infer(graph::Types in) const {
  require_inputs(name(), in, 3);
  require_norm(name(), a_, in[1], in.subspan(2));
  require_same_shape(name(), in[0], in[1]);
  require(in[0].desc.dtype == in[1].desc.dtype, "{}: dy is {}, x {}", name(),
          in[0].desc.to_string(), in[1].desc.to_string());
  std::vector<graph::ValueType> out{in[1], in[2]};
  if (a_.has_beta()) out.push_back(in[2]);
  return out;
}

}  // namespace tutti::ops
