#include "tutti/ops/elementwise.h"

#include "tutti/ops/shape_check.h"

namespace tutti::ops {
namespace {

std::vector<graph::ValueType> infer_pair(const graph::Op& op, graph::Types in) {
  require_inputs(op.name(), in, 2);
  require_same_shape(op.name(), in[0], in[1]);
  require(in[0].desc.dtype == in[1].desc.dtype && is_float(in[0].desc.dtype),
          "{}: {} and {} are not of one floating-point type", op.name(), in[0].desc.to_string(),
          in[1].desc.to_string());
  return {in[0]};
}

}  // namespace

std::vector<graph::ValueType> Add::infer(graph::Types in) const { return infer_pair(*this, in); }

std::vector<graph::Value> Add::grad(const graph::GradArgs& args) const {
  require(args.dout[0].valid(),
          "add: '{}' cannot be a loss; give differentiate the losses one by one", args.node.name);
  return {args.dout[0], args.dout[0]};
}

std::vector<graph::ValueType> Mul::infer(graph::Types in) const { return infer_pair(*this, in); }

std::vector<graph::Value> Mul::grad(const graph::GradArgs& args) const {
  require(args.dout[0].valid(),
          "mul: '{}' cannot be a loss; give differentiate the losses one by one", args.node.name);
  const graph::Node& node = args.node;
  std::vector<graph::Value> din(2);
  for (size_t i = 0; i < 2; ++i)
    if (args.needed[i])
      din[i] = args.graph.append1(fmt::format("{}.d{}", node.name, i == 0 ? "a" : "b"),
                                  std::make_shared<Mul>(), {args.dout[0], node.in[1 - i]});
  return din;
}

std::string Scale::attributes() const { return fmt::format("factor {}", factor_); }

std::vector<graph::ValueType> Scale::infer(graph::Types in) const {
  require_inputs(name(), in, 1);
  require(is_float(in[0].desc.dtype), "scale: needs floating-point numbers, met {}",
          in[0].desc.to_string());
  return {in[0]};
}

std::vector<graph::Value> Scale::grad(const graph::GradArgs& args) const {
  require(args.dout[0].valid(), "scale: '{}' cannot be a loss; losses have a scale of their own",
          args.node.name);
  return {args.graph.append1(args.node.name + ".dx", args.node.op, {args.dout[0]})};
}

}  // namespace tutti::ops
