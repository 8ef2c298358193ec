#include "tutti/ops/group_norm.h"

#include "tutti/ops/shape_check.h"

namespace tutti::ops {
namespace {

void require_groups(std::string_view op, const GroupNormAttributes& a, const graph::ValueType& x,
                    graph::Types channels) {
  require_batched(op, x, 2);
  require(a.epsilon > 0, "{}: epsilon is {}, it must be positive", op, a.epsilon);
  const int64_t count = x.desc.shape[1];
  require(a.groups > 0 && count % a.groups == 0,
          "{}: {} groups for {} channels: a number that divides them is needed", op, a.groups,
          count);
  for (const graph::ValueType& each : channels)
    require(each.desc.shape == Shape{count} && each.desc.dtype == DType::f32 && !each.batched,
            "{}: {} for x {}: one f32 number for each of {} channels is needed", op,
            each.desc.to_string(), x.desc.to_string(), count);
}

}  // namespace

std::string GroupNormAttributes::to_string() const {
  return fmt::format("groups {} epsilon {}", groups, epsilon);
}

std::vector<graph::ValueType> GroupNorm::infer(graph::Types in) const {
  require_inputs(name(), in, 3);
  require_groups(name(), a_, in[0], in.subspan(1));
  return {in[0]};
}

std::vector<graph::Value> GroupNorm::grad(const graph::GradArgs& args) const {
  const graph::Node& node = args.node;
  return args.graph.append(node.name + ".dx", std::make_shared<GroupNormGrad>(a_),
                           std::vector<graph::Value>{args.dout[0], node.in[0], node.in[1]});
}

std::vector<graph::ValueType> GroupNormGrad::infer(graph::Types in) const {
  require_inputs(name(), in, 3);
  require_groups(name(), a_, in[1], in.subspan(2));
  require_same_shape(name(), in[0], in[1]);
  require(in[0].desc.dtype == in[1].desc.dtype, "{}: dy is {}, x {}", name(),
          in[0].desc.to_string(), in[1].desc.to_string());
  return {in[1], in[2], in[2]};
}

graph::Value group_norm(graph::Graph& graph, const std::string& name, graph::Value x,
                        GroupNormAttributes attributes) {
  const Shape channels{graph.shape(x)[1]};
  return graph.append1(name, std::make_shared<GroupNorm>(attributes),
                       {x, graph.parameter(name + ".weight", channels, {graph::Init::Kind::ones}),
                        graph.parameter(name + ".bias", channels, {graph::Init::Kind::zeros})});
}

}  // namespace tutti::ops
