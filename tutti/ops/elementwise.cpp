#include "tutti/ops/elementwise.h"

#include "tutti/ops/shape_check.h"

namespace tutti::ops {
namespace {

std::vector<ValueType> infer_pair(const Op& op, Types in) {
  require_inputs(op.name(), in, 2);
  require_same_shape(op.name(), in[0], in[1]);
  require(in[0].desc.dtype == in[1].desc.dtype && is_float(in[0].desc.dtype),
          "{}: {} and {} are not of one floating-point type", op.name(), in[0].desc, in[1].desc);
  return {in[0]};
}

}  // namespace

std::vector<ValueType> Add::infer(Types in) const { return infer_pair(*this, in); }

std::vector<Value> Add::grad(const GradArgs& args) const {
  require(args.dout[0].valid(),
          "add: '{}' cannot be a loss; give differentiate the losses one by one", args.node.name);
  return {args.dout[0], args.dout[0]};
}

std::vector<ValueType> Mul::infer(Types in) const { return infer_pair(*this, in); }

std::vector<Value> Mul::grad(const GradArgs& args) const {
  require(args.dout[0].valid(),
          "mul: '{}' cannot be a loss; give differentiate the losses one by one", args.node.name);
  const Node& node = args.node;
  std::vector<Value> din(2);
  for (size_t i = 0; i < 2; ++i)
    if (args.needed[i])
      din[i] = args.graph.append1(fmt::format("{}.d{}", node.name, i == 0 ? "a" : "b"),
                                  std::make_shared<Mul>(), {args.dout[0], node.in[1 - i]});
  return din;
}

std::string Scale::attributes() const { return fmt::format("factor {}", factor_); }

std::vector<ValueType> Scale::infer(Types in) const {
  require_inputs(name(), in, 1);
  require(is_float(in[0].desc.dtype), "scale: needs floating-point numbers, met {}", in[0].desc);
  return {in[0]};
}

std::vector<Value> Scale::grad(const GradArgs& args) const {
  require(args.dout[0].valid(), "scale: '{}' cannot be a loss; losses have a scale of their own",
          args.node.name);
  return {args.append1(".dx", args.node.op, {args.dout[0]})};
}

}  // namespace tutti::ops
