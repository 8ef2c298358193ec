#include "tutti/ops/sequence/layer_norm.h"

#include "tutti/ops/shape_check.h"

namespace tutti::ops {
namespace {

void require_norm(std::string_view op, const LayerNormAttributes& a, const ValueType& x,
                  Types channels) {
  require_batched(op, x, 2);
  require(a.epsilon > 0, "{}: epsilon is {}, it must be positive", op, a.epsilon);
  for (const ValueType& each : channels)
    require(
        each.desc.shape == Shape{x.desc.shape[1]} && each.desc.dtype == DType::f32 && !each.batched,
        "{}: {} for x {}: one f32 number for each of {} channels is needed", op, each.desc, x.desc,
        x.desc.shape[1]);
}

}  // namespace

std::string_view name_of(LayerNormKind kind) {
  return kind == LayerNormKind::layer ? "layer" : "rms";
}

std::string LayerNormAttributes::to_string() const {
  return fmt::format("{} epsilon {}", name_of(kind), epsilon);
}

std::vector<ValueType> LayerNorm::infer(Types in) const {
  require_inputs(name(), in, a_.has_beta() ? 3 : 2);
  require_norm(name(), a_, in[0], in.subspan(1));
  return {in[0]};
}

std::vector<Value> LayerNorm::grad(const GradArgs& args) const {
  const Node& node = args.node;
  return args.append(".dx", std::make_shared<LayerNormGrad>(a_),
                     {args.dout[0], node.in[0], node.in[1]});
}

std::vector<ValueType> LayerNormGrad::infer(Types in) const {
  require_inputs(name(), in, 3);
  require_norm(name(), a_, in[1], in.subspan(2));
  require_same_shape(name(), in[0], in[1]);
  require(in[0].desc.dtype == in[1].desc.dtype, "{}: dy is {}, x {}", name(), in[0].desc,
          in[1].desc);
  std::vector<ValueType> out{in[1], in[2]};
  if (a_.has_beta()) out.push_back(in[2]);
  return out;
}

}  // namespace tutti::ops
