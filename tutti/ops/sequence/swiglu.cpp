#include "tutti/ops/sequence/swiglu.h"

#include "tutti/ops/shape_check.h"

namespace tutti::ops {
namespace {

void require_same(std::string_view op, graph::Types in, size_t count) {
  require_inputs(op, in, count);
  require_batched(op, in[0], 2);
  for (const graph::ValueType& each : in) {
    require_same_shape(op, in[0], each);
    require(each.desc.dtype == in[0].desc.dtype, "{}: operands of types {} and {}", op,
            name_of(in[0].desc.dtype), name_of(each.desc.dtype));
  }
}

}  // namespace

std::vector<graph::ValueType> SwiGlu::infer(graph::Types in) const {
  require_same(name(), in, 2);
  return {in[0]};
}

std::vector<graph::Value> SwiGlu::grad(const graph::GradArgs& args) const {
  const graph::Node& node = args.node;
  return args.graph.append(node.name + ".dx", std::make_shared<SwiGluGrad>(),
                           std::vector<graph::Value>{args.dout[0], node.in[0], node.in[1]});
}

std::vector<graph::ValueType> SwiGluGrad::infer(graph::Types in) const {
  require_same(name(), in, 3);
  return {in[0], in[0]};
}

}  // namespace tutti::ops
