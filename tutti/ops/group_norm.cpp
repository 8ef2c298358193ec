#include "tutti/ops/group_norm.h"

#include "tutti/ops/shape_check.h"

namespace tutti::ops {
namespace {

void require_groups(std::string_view op, const GroupNormAttributes& a, const ValueType& x,
                    Types channels) {
  require_batched(op, x, 2);
  require(a.epsilon > 0, "{}: epsilon is {}, it must be positive", op, a.epsilon);
  const int64_t count = x.desc.shape[1];
  require(a.groups > 0 && count % a.groups == 0,
          "{}: {} groups for {} channels: a number that divides them is needed", op, a.groups,
          count);
  for (const ValueType& each : channels)
    require(each.desc.shape == Shape{count} && each.desc.dtype == DType::f32 && !each.batched,
            "{}: {} for x {}: one f32 number for each of {} channels is needed", op, each.desc,
            x.desc, count);
}

}  // namespace

std::string GroupNormAttributes::to_string() const {
  return fmt::format("groups {} epsilon {}", groups, epsilon);
}

std::vector<ValueType> GroupNorm::infer(Types in) const {
  require_inputs(name(), in, 3);
  require_groups(name(), a_, in[0], in.subspan(1));
  return {in[0]};
}

std::vector<Value> GroupNorm::grad(const GradArgs& args) const {
  const Node& node = args.node;
  return args.append(".dx", std::make_shared<GroupNormGrad>(a_),
                     {args.dout[0], node.in[0], node.in[1]});
}

std::vector<ValueType> GroupNormGrad::infer(Types in) const {
  require_inputs(name(), in, 3);
  require_groups(name(), a_, in[1], in.subspan(2));
  require_same_shape(name(), in[0], in[1]);
  require(in[0].desc.dtype == in[1].desc.dtype, "{}: dy is {}, x {}", name(), in[0].desc,
          in[1].desc);
  return {in[1], in[2], in[2]};
}

Value group_norm(Graph& graph, const std::string& name, Value x, GroupNormAttributes attributes) {
  const Shape channels{graph.shape(x)[1]};
  return graph.append1(name, std::make_shared<GroupNorm>(attributes),
                       {x, graph.parameter(name + ".weight", channels, {Init::Kind::ones}),
                        graph.parameter(name + ".bias", channels, {Init::Kind::zeros})});
}

}  // namespace tutti::ops
