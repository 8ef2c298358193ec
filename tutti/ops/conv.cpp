#include "tutti/ops/conv.h"

#include "tutti/ops/shape_check.h"

namespace tutti::ops {

std::string ConvAttributes::to_string() const {
  std::string text = fmt::format("stride {} pad {}", extents_text(stride, spatial),
                                 extents_text(pad_low, spatial));
  if (pad_high != pad_low) text += "," + extents_text(pad_high, spatial);
  if (dilation != Extents{1, 1, 1}) text += " dilation " + extents_text(dilation, spatial);
  if (groups != 1) text += fmt::format(" groups {}", groups);
  return text;
}

Shape conv_output_shape(const ConvAttributes& a, const Shape& x, const Shape& w) {
  require(a.spatial >= 1 && a.spatial <= 3,
          "conv: {} spatial dimensions asked for, 1 to 3 are supported", a.spatial);
  require(x.rank() == a.spatial + 2 && w.rank() == a.spatial + 2,
          "conv: x {} and w {} need {} dimensions each", x, w, a.spatial + 2);
  require(a.groups >= 1 && x[1] == w[1] * a.groups && w[0] % a.groups == 0,
          "conv: x {} has {} channels, w {} with {} groups takes {}", x, x[1], w, a.groups,
          w[1] * a.groups);
  Shape y = x;
  y[1] = w[0];
  for (int d = 0; d < a.spatial; ++d) {
    const auto i = static_cast<size_t>(d);
    require(a.stride[i] >= 1 && a.dilation[i] >= 1 && a.pad_low[i] >= 0 && a.pad_high[i] >= 0,
            "conv: stride and dilation are at least 1 and padding at least 0, met {}",
            a.to_string());
    const int64_t reach = a.dilation[i] * (w[d + 2] - 1) + 1;
    const int64_t room = x[d + 2] + a.pad_low[i] + a.pad_high[i] - reach;
    require(room >= 0,
            "conv: a kernel reaching over {} does not fit into extent {} with padding {}+{} (x {}, "
            "w {})",
            reach, x[d + 2], a.pad_low[i], a.pad_high[i], x, w);
    y[d + 2] = room / a.stride[i] + 1;
  }
  return y;
}

std::string Conv::attributes() const {
  return a_.to_string() + (bias_ ? " bias" : "") +
         (activation_ ? " " + activation_->to_string() : "");
}

std::vector<ValueType> Conv::infer(Types in) const {
  require_inputs(name(), in, bias_ ? 3 : 2);
  require_batched(name(), in[0], 3);
  const Shape y = conv_output_shape(a_, in[0].desc.shape, in[1].desc.shape);
  if (activation_) {
    require_activation(name(), *activation_);
    require(activation_->known_from_result(),
            "conv: the gradient of {} needs its argument; append it as an op of its own",
            activation_->to_string());
  }
  if (bias_)
    require(in[2].desc.shape == Shape{y[1]}, "conv: bias {} does not fit {} output channels",
            in[2].desc.shape, y[1]);
  return {batched_as(y, in[0].desc.dtype)};
}

std::vector<Value> Conv::grad(const GradArgs& args) const {
  Graph& graph = args.graph;
  const Node& node = args.node;
  Value dy = args.dout[0];
  if (activation_)
    dy = graph.append1(fmt::format("{}.d{}", node.name, name_of(activation_->kind)),
                       std::make_shared<ActivationGrad>(*activation_), {dy, node.out[0]});
  std::vector<Value> din(node.in.size());
  // The weights' gradient comes first: its exchange can begin while the data gradient is computed.
  if (args.needed[1])
    din[1] = args.append1(".dw", std::make_shared<ConvBackwardWeights>(a_, graph.shape(node.in[1])),
                          {node.in[0], dy});
  if (bias_ && args.needed[2]) din[2] = args.append1(".db", std::make_shared<BiasBackward>(), {dy});
  if (args.needed[0])
    din[0] = args.append1(".dx", std::make_shared<ConvBackwardData>(a_, graph.shape(node.in[0])),
                          {dy, node.in[1]});
  return din;
}

double Conv::flop(Types in, Types out) const {
  return product_flop(out[0].desc.elements(), in[1].desc.shape.elements_from(1));
}

std::string ConvBackwardData::attributes() const {
  return fmt::format("{} x {}", a_.to_string(), with_batch(x_shape_, 0));
}

std::vector<ValueType> ConvBackwardData::infer(Types in) const {
  require_inputs(name(), in, 2);
  require_batched(name(), in[0], 3);
  const Shape& dy = in[0].desc.shape;
  const Shape x = with_batch(x_shape_, dy[0]);
  const Shape y = conv_output_shape(a_, x, in[1].desc.shape);
  require(y == dy, "conv_backward_data: dy is {}, x {} and w {} make {}", dy, x, in[1].desc.shape,
          y);
  return {batched_as(x, in[0].desc.dtype)};
}

double ConvBackwardData::flop(Types in, Types) const {
  return product_flop(in[0].desc.elements(), in[1].desc.shape.elements_from(1));
}

std::string ConvBackwardWeights::attributes() const {
  return fmt::format("{} w {}{}", a_.to_string(), w_shape_, whole_ ? " whole" : "");
}

std::vector<ValueType> ConvBackwardWeights::infer(Types in) const {
  require_inputs(name(), in, 2);
  require_batched(name(), in[0], 3);
  require_batched(name(), in[1], 3);
  const Shape y = conv_output_shape(a_, in[0].desc.shape, w_shape_);
  require(y == in[1].desc.shape, "conv_backward_weights: dy is {}, x {} and w {} make {}",
          in[1].desc.shape, in[0].desc.shape, w_shape_, y);
  return {unbatched_f32(w_shape_)};
}

double ConvBackwardWeights::flop(Types in, Types) const {
  return product_flop(in[1].desc.elements(), w_shape_.elements_from(1));
}

std::vector<ValueType> BiasBackward::infer(Types in) const {
  require_inputs(name(), in, 1);
  require_batched(name(), in[0], 2);
  return {unbatched_f32(Shape{in[0].desc.shape[1]})};
}

std::optional<Reach> Conv::reach(Types in, int axis, Rows out) const {
  const auto i = static_cast<size_t>(axis);
  ConvAttributes inner = a_;
  inner.pad_low[i] = inner.pad_high[i] = 0;
  const int64_t first = out.first * a_.stride[i] - a_.pad_low[i];
  const int64_t window = a_.dilation[i] * (in[1].desc.shape[2 + axis] - 1) + 1;
  Reach reach{.in = {{2 + axis, {first, first + (out.count() - 1) * a_.stride[i] + window}}},
              .op = std::make_shared<Conv>(inner, bias_, activation_)};
  reach.in.resize(in.size());
  return reach;
}

}  // namespace tutti::ops
