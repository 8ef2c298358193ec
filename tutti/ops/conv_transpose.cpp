#include "tutti/ops/conv_transpose.h"

#include "tutti/ops/shape_check.h"

namespace tutti::ops {

std::string ConvTranspose::attributes() const {
  std::string text = a_.to_string();
  if (output_pad_ != Extents{0, 0, 0})
    text += " output_pad " + extents_text(output_pad_, a_.spatial);
  return text + (bias_ ? " bias" : "");
}

std::vector<ValueType> ConvTranspose::infer(Types in) const {
  require_inputs(name(), in, bias_ ? 3 : 2);
  require_batched(name(), in[0], 3);
  const Shape &x = in[0].desc.shape, &w = in[1].desc.shape;
  require(x.rank() == a_.spatial + 2 && w.rank() == x.rank(),
          "conv_transpose: x {} and w {} need {} dimensions each", x, w, a_.spatial + 2);
  require(x[1] == w[0], "conv_transpose: x {} has {} channels, w {} takes {}", x, x[1], w, w[0]);
  Shape y = x;
  y[1] = w[1] * a_.groups;
  for (int d = 0; d < a_.spatial; ++d) {
    const auto i = static_cast<size_t>(d);
    require(output_pad_[i] >= 0 && (output_pad_[i] == 0 || output_pad_[i] < a_.stride[i]),
            "conv_transpose: output padding {} must be less than stride {}", output_pad_[i],
            a_.stride[i]);
    y[d + 2] = (x[d + 2] - 1) * a_.stride[i] - a_.pad_low[i] - a_.pad_high[i] +
               a_.dilation[i] * (w[d + 2] - 1) + 1 + output_pad_[i];
    require(y[d + 2] >= 1, "conv_transpose: x {} with w {} and {} leaves no output", x, w,
            attributes());
  }
  const Shape back = conv_output_shape(a_, y, w);
  CHECK(back == x, "{} against {}", back, x);
  if (bias_)
    require(in[2].desc.shape == Shape{y[1]},
            "conv_transpose: bias {} does not fit {} output channels", in[2].desc.shape, y[1]);
  return {batched_as(y, in[0].desc.dtype)};
}

std::vector<Value> ConvTranspose::grad(const GradArgs& args) const {
  Graph& graph = args.graph;
  const Node& node = args.node;
  const Value dy = args.dout[0];
  std::vector<Value> din(node.in.size());
  if (args.needed[1])
    din[1] = args.append1(".dw", std::make_shared<ConvBackwardWeights>(a_, graph.shape(node.in[1])),
                          {dy, node.in[0]});
  if (bias_ && args.needed[2]) din[2] = args.append1(".db", std::make_shared<BiasBackward>(), {dy});
  if (args.needed[0])
    din[0] = args.append1(".dx", std::make_shared<Conv>(a_, false), {dy, node.in[1]});
  return din;
}

double ConvTranspose::flop(Types in, Types) const {
  return product_flop(in[0].desc.elements(), in[1].desc.shape.elements_from(1));
}

std::optional<Reach> ConvTranspose::reach(Types in, int axis, Rows out) const {
  // Row r of the result is a sum over the rows i of x and k of w with r = i * stride - pad_low +
  // dilation * k.
  const auto d = static_cast<size_t>(axis);
  const int64_t stride = a_.stride[d], low = a_.pad_low[d];
  const int64_t span = a_.dilation[d] * (in[1].desc.shape[2 + axis] - 1);
  const auto floor_div = [](int64_t a, int64_t b) { return a >= 0 ? a / b : -((b - 1 - a) / b); };
  const int64_t first = floor_div(out.first + low - span + stride - 1, stride);
  const int64_t last = floor_div(out.last - 1 + low, stride) + 1;
  ConvAttributes inner = a_;
  Extents output_pad = output_pad_;
  inner.pad_low[d] = out.first + low - first * stride;
  const int64_t unpadded = (last - first - 1) * stride - inner.pad_low[d] + span + 1;
  inner.pad_high[d] = std::max<int64_t>(unpadded - out.count(), 0);
  output_pad[d] = std::max<int64_t>(out.count() - unpadded, 0);
  if (last <= first || inner.pad_low[d] < 0 || output_pad[d] >= stride) return std::nullopt;
  Reach reach{.in = {{2 + axis, {first, last}}},
              .op = std::make_shared<ConvTranspose>(inner, bias_, output_pad)};
  reach.in.resize(in.size());
  return reach;
}

}  // namespace tutti::ops
