#include "tutti/ops/dense.h"

#include "tutti/ops/conv.h"
#include "tutti/ops/shape_check.h"

namespace tutti::ops {

std::string Dense::attributes() const {
  return fmt::format("{}{}", bias_ ? "bias " : "", name_of(output_));
}

std::vector<ValueType> Dense::infer(Types in) const {
  require_inputs(name(), in, bias_ ? 3 : 2);
  require_batched(name(), in[0], 2);
  const Shape &x = in[0].desc.shape, &w = in[1].desc.shape;
  require(w.rank() == 2 && w[1] == x.elements_from(1),
          "dense: x {} has {} features a sample, w is {}", x, x.elements_from(1), w);
  if (bias_)
    require(in[2].desc.shape == Shape{w[0]}, "dense: bias {} does not fit {} outputs",
            in[2].desc.shape, w[0]);
  require(is_float(output_), "dense: the result cannot be {}", name_of(output_));
  return {batched_as(Shape{x[0], w[0]}, output_)};
}

std::vector<Value> Dense::grad(const GradArgs& args) const {
  Graph& graph = args.graph;
  const Node& node = args.node;
  const Value dy = args.dout[0];
  std::vector<Value> din(node.in.size());
  if (args.needed[1])
    din[1] = args.append1(".dw", std::make_shared<DenseBackwardWeights>(), {node.in[0], dy});
  if (bias_ && args.needed[2]) din[2] = args.append1(".db", std::make_shared<BiasBackward>(), {dy});
  if (args.needed[0]) {
    const TensorDesc& x = graph.type(node.in[0]).desc;
    din[0] = args.append1(".dx", std::make_shared<DenseBackwardData>(x.shape, x.dtype),
                          {dy, node.in[1]});
  }
  return din;
}

double Dense::flop(Types in, Types) const {
  return product_flop(in[0].desc.shape[0], in[1].desc.elements());
}

std::string DenseBackwardData::attributes() const {
  return fmt::format("x {} {}", with_batch(x_shape_, 0), name_of(x_dtype_));
}

std::vector<ValueType> DenseBackwardData::infer(Types in) const {
  require_inputs(name(), in, 2);
  require_batched(name(), in[0], 2);
  const Shape &dy = in[0].desc.shape, &w = in[1].desc.shape;
  require(dy.rank() == 2 && w.rank() == 2 && dy[1] == w[0] && w[1] == x_shape_.elements_from(1),
          "dense_backward_data: dy {}, w {} and x {} do not fit", dy, w, x_shape_);
  return {batched_as(with_batch(x_shape_, dy[0]), x_dtype_)};
}

double DenseBackwardData::flop(Types in, Types) const {
  return product_flop(in[0].desc.shape[0], in[1].desc.elements());
}

std::vector<ValueType> DenseBackwardWeights::infer(Types in) const {
  require_inputs(name(), in, 2);
  require_batched(name(), in[0], 2);
  require_batched(name(), in[1], 2);
  const Shape &x = in[0].desc.shape, &dy = in[1].desc.shape;
  require(dy.rank() == 2 && dy[0] == x[0], "dense_backward_weights: x {} and dy {} do not fit", x,
          dy);
  return {unbatched_f32(Shape{dy[1], x.elements_from(1)})};
}

double DenseBackwardWeights::flop(Types in, Types out) const {
  return product_flop(in[0].desc.shape[0], out[0].desc.elements());
}

}  // namespace tutti::ops
