#include "tutti/ops/activation.h"

#include "tutti/ops/shape_check.h"

namespace tutti {
namespace {

std::string describe(ActivationKind kind, float slope) {
  return kind == ActivationKind::leaky_relu ? fmt::format("leaky_relu slope {}", slope)
                                            : std::string(name_of(kind));
}

}  // namespace

std::string_view name_of(ActivationKind kind) {
  switch (kind) {
    case ActivationKind::relu: return "relu";
    case ActivationKind::leaky_relu: return "leaky_relu";
    case ActivationKind::sigmoid: return "sigmoid";
    case ActivationKind::tanh: return "tanh";
    case ActivationKind::gelu: return "gelu";
  }
  return "?";
}

std::string Activation::attributes() const { return describe(kind_, slope_); }

std::vector<ValueType> Activation::infer(std::span<const ValueType> in) const {
  require_inputs(name(), in, 1);
  require(is_float(in[0].desc.dtype), "activation: needs floating-point numbers, met {}",
          in[0].desc.to_string());
  // With a slope <= 0 the sign of x cannot be read from y, which the gradient relies on.
  require(kind_ != ActivationKind::leaky_relu || slope_ > 0,
          "activation: the slope of leaky_relu is {}, it must be positive", slope_);
  return {in[0]};
}

std::vector<Value> Activation::grad(const GradArgs& args) const {
  const Node& node = args.node;
  const Value r = kind_ == ActivationKind::gelu ? node.in[0] : node.out[0];
  return {args.graph.append1(node.name + ".dx", std::make_shared<ActivationGrad>(kind_, slope_),
                             {args.dout[0], r})};
}

std::string ActivationGrad::attributes() const { return describe(kind_, slope_); }

std::vector<ValueType> ActivationGrad::infer(std::span<const ValueType> in) const {
  require_inputs(name(), in, 2);
  require_same_shape(name(), in[0], in[1]);
  require(in[0].desc.dtype == in[1].desc.dtype, "activation_grad: dy is {}, the activation was {}",
          name_of(in[0].desc.dtype), name_of(in[1].desc.dtype));
  return {in[0]};
}

}  // namespace tutti
