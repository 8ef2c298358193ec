#include "tutti/ops/activation.h"

#include "tutti/ops/shape_check.h"

namespace tutti::ops {
namespace {

/// The names in the order of ActivationKind.
constexpr std::array<std::string_view, 8> kNames{"relu", "leaky_relu", "sigmoid", "tanh",
                                                 "gelu", "gelu_tanh",  "silu",    "mish"};

}  // namespace

std::string ActivationAttributes::to_string() const {
  return kind == ActivationKind::leaky_relu ? fmt::format("leaky_relu slope {}", slope)
                                            : std::string(name_of(kind));
}

void require_activation(std::string_view op, const ActivationAttributes& a) {
  // With a slope <= 0 the sign of x cannot be read from y, which the gradient relies on.
  require(a.kind != ActivationKind::leaky_relu || a.slope > 0,
          "{}: the slope of leaky_relu is {}, it must be positive", op, a.slope);
}

std::string_view name_of(ActivationKind kind) { return kNames.at(static_cast<size_t>(kind)); }

std::vector<ActivationKind> activation_kinds() {
  std::vector<ActivationKind> all;
  for (size_t i = 0; i < kNames.size(); ++i) all.push_back(static_cast<ActivationKind>(i));
  return all;
}

std::vector<ValueType> Activation::infer(Types in) const {
  require_inputs(name(), in, 1);
  require(is_float(in[0].desc.dtype), "activation: needs floating-point numbers, met {}",
          in[0].desc);
  require_activation(name(), a_);
  return {in[0]};
}

std::vector<Value> Activation::grad(const GradArgs& args) const {
  const Node& node = args.node;
  const Value r = a_.known_from_result() ? node.out[0] : node.in[0];
  return {args.append1(".dx", std::make_shared<ActivationGrad>(a_), {args.dout[0], r})};
}

std::vector<ValueType> ActivationGrad::infer(Types in) const {
  require_inputs(name(), in, 2);
  require_same_shape(name(), in[0], in[1]);
  require(in[0].desc.dtype == in[1].desc.dtype, "activation_grad: dy is {}, the activation was {}",
          name_of(in[0].desc.dtype), name_of(in[1].desc.dtype));
  return {in[0]};
}

}  // namespace tutti::ops
