#include "tutti/ops/sequence/swiglu.h"

#include "tutti/ops/shape_check.h"

namespace tutti::ops {
namespace {

void require_same(std::string_view op, Types in, size_t count) {
  require_inputs(op, in, count);
  require_batched(op, in[0], 2);
  for (const ValueType& each : in) {
    require_same_shape(op, in[0], each);
    require(each.desc.dtype == in[0].desc.dtype, "{}: operands of types {} and {}", op,
            name_of(in[0].desc.dtype), name_of(each.desc.dtype));
  }
}

}  // namespace

std::vector<ValueType> SwiGlu::infer(Types in) const {
  require_same(name(), in, 2);
  return {in[0]};
}

std::vector<Value> SwiGlu::grad(const GradArgs& args) const {
  const Node& node = args.node;
  return args.append(".dx", std::make_shared<SwiGluGrad>(), {args.dout[0], node.in[0], node.in[1]});
}

std::vector<ValueType> SwiGluGrad::infer(Types in) const {
  require_same(name(), in, 3);
  return {in[0], in[0]};
}

}  // namespace tutti::ops
