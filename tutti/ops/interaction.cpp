#include "tutti/ops/interaction.h"

#include "tutti/ops/shape_check.h"

namespace tutti::ops {
namespace {

/// Returns the type of the products of x.
ValueType products_of(std::string_view op, const InteractionAttributes& a, const ValueType& x) {
  require_batched(op, x, 2);
  const Shape& shape = x.desc.shape;
  require(shape.rank() == 2 && a.width >= 1 && shape[1] % a.width == 0,
          "{}: x {} is no row of features of {} numbers", op, shape, a.width);
  const FeaturePairs pairs{shape[1] / a.width, a.itself};
  require(pairs.count() > 0, "{}: x {} has one feature, two make a pair", op, shape);
  return batched_as({shape[0], pairs.count()}, x.desc.dtype);
}

}  // namespace

std::string InteractionAttributes::to_string() const {
  return fmt::format("width {}{}", width, itself ? " itself" : "");
}

std::vector<ValueType> Interaction::infer(Types in) const {
  require_inputs(name(), in, 1);
  return {products_of(name(), a_, in[0])};
}

std::vector<Value> Interaction::grad(const GradArgs& args) const {
  return {
      args.append1(".dx", std::make_shared<InteractionGrad>(a_), {args.dout[0], args.node.in[0]})};
}

double Interaction::flop(Types, Types out) const {
  return product_flop(out[0].desc.elements(), a_.width);
}

std::vector<ValueType> InteractionGrad::infer(Types in) const {
  require_inputs(name(), in, 2);
  const ValueType y = products_of(name(), a_, in[1]);
  require(y.desc.shape == in[0].desc.shape && y.desc.dtype == in[0].desc.dtype && in[0].batched,
          "{}: dy is {}, the products of x {} are {}", name(), in[0].desc, in[1].desc, y.desc);
  return {in[1]};
}

double InteractionGrad::flop(Types in, Types) const {
  return 4.0 * static_cast<double>(in[0].desc.elements()) * static_cast<double>(a_.width);
}

}  // namespace tutti::ops
