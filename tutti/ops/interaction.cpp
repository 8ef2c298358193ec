#include "tutti/ops/interaction.h"

#include "tutti/ops/shape_check.h"

namespace tutti::ops {
namespace {

/// Returns the type of the products of x.
graph::ValueType products_of(std::string_view op, const graph::ValueType& x, int64_t width,
                             bool itself) {
  require_batched(op, x, 2);
  const Shape& shape = x.desc.shape;
  require(shape.rank() == 2 && width >= 1 && shape[1] % width == 0,
          "{}: x {} is no row of features of {} numbers", op, shape.to_string(), width);
  const FeaturePairs pairs{shape[1] / width, itself};
  require(pairs.count() > 0, "{}: x {} has one feature, two make a pair", op, shape.to_string());
  return batched_as({shape[0], pairs.count()}, x.desc.dtype);
}

std::string width_text(int64_t width, bool itself) {
  return fmt::format("width {}{}", width, itself ? " itself" : "");
}

}  // namespace

std::string Interaction::attributes() const { return width_text(width_, itself_); }
std::string InteractionGrad::attributes() const { return width_text(width_, itself_); }

std::vector<graph::ValueType> Interaction::infer(graph::Types in) const {
  require_inputs(name(), in, 1);
  return {products_of(name(), in[0], width_, itself_)};
}

std::vector<graph::Value> Interaction::grad(const graph::GradArgs& args) const {
  return {args.graph.append1(args.node.name + ".dx",
                             std::make_shared<InteractionGrad>(width_, itself_),
                             {args.dout[0], args.node.in[0]})};
}

double Interaction::flop(graph::Types, graph::Types out) const {
  return 2.0 * static_cast<double>(out[0].desc.elements()) * static_cast<double>(width_);
}

std::vector<graph::ValueType> InteractionGrad::infer(graph::Types in) const {
  require_inputs(name(), in, 2);
  const graph::ValueType y = products_of(name(), in[1], width_, itself_);
  require(y.desc.shape == in[0].desc.shape && y.desc.dtype == in[0].desc.dtype && in[0].batched,
          "{}: dy is {}, the products of x {} are {}", name(), in[0].desc.to_string(),
          in[1].desc.to_string(), y.desc.to_string());
  return {in[1]};
}

double InteractionGrad::flop(graph::Types in, graph::Types) const {
  return 4.0 * static_cast<double>(in[0].desc.elements()) * static_cast<double>(width_);
}

}  // namespace tutti::ops
