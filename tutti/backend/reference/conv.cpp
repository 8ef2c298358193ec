#include "tutti/ops/conv.h"

#include "tutti/backend/reference/rules.h"
#include "tutti/ops/conv_transpose.h"

namespace tutti {
namespace {

/// ConvGeometry with three spatial dimensions; of a 2-D convolution the first is 1.
struct ConvGeometry {
  std::array<int64_t, 3> stride{1, 1, 1}, dilation{1, 1, 1}, pad{0, 0, 0};
  int64_t groups = 1;

  explicit ConvGeometry(const ConvAttributes& a) : groups(a.groups) {
    for (int d = 0; d < a.spatial; ++d) {
      const auto to = static_cast<size_t>(3 - a.spatial + d), from = static_cast<size_t>(d);
      stride[to] = a.stride[from];
      dilation[to] = a.dilation[from];
      pad[to] = a.pad_low[from];
    }
  }
};

/// Calls tap(x index, w index, y index) for every product that a convolution x, w -> y sums.
template <class Tap>
void for_each_tap(const ConvGeometry& g, const PlainTensor& x, const PlainTensor& w,
                  const PlainTensor& y, Tap tap) {
  const int64_t outputs = y.extent(1) / g.groups, inputs = x.extent(1) / g.groups;
  const auto inside = [&](size_t d, int64_t o, int64_t k, int64_t& i) {
    i = o * g.stride[d] - g.pad[d] + k * g.dilation[d];
    return i >= 0 && i < x.extent(static_cast<int>(d) + 2);
  };
  int64_t id = 0, ih = 0, iw = 0;
  for (int64_t n = 0; n < y.extent(0); ++n)
    for (int64_t k = 0; k < y.extent(1); ++k)
      for (int64_t c = 0; c < inputs; ++c)
        for (int64_t kd = 0; kd < w.extent(2); ++kd)
          for (int64_t kh = 0; kh < w.extent(3); ++kh)
            for (int64_t kw = 0; kw < w.extent(4); ++kw) {
              const int64_t wi = w.at(k, c, kd, kh, kw), channel = k / outputs * inputs + c;
              for (int64_t od = 0; od < y.extent(2); ++od)
                for (int64_t oh = 0; oh < y.extent(3); ++oh) {
                  if (!inside(0, od, kd, id) || !inside(1, oh, kh, ih)) continue;
                  const int64_t x_row = x.at(n, channel, id, ih, 0), y_row = y.at(n, k, od, oh, 0);
                  for (int64_t ow = 0; ow < y.extent(4); ++ow)
                    if (inside(2, ow, kw, iw)) tap(x_row + iw, wi, y_row + ow);
                }
            }
}

/// Sets every element to its channel's bias, or to 0.
void start_with_bias(PlainTensor& y, const PlainTensor* bias) {
  const int64_t positions = y.shape().elements_from(2);
  for (int64_t i = 0; i < y.size(); ++i) y[i] = bias ? (*bias)[i / positions % y.extent(1)] : 0;
}

Rule conv_forward(const Conv& op) {
  return {.run = [g = ConvGeometry(op.conv()), bias = op.bias(),
                  f = op.activation()](const RuleCall& call) {
    const PlainTensor &x = call.in[0], &w = call.in[1];
    PlainTensor& y = call.out[0];
    start_with_bias(y, bias ? &call.in[2] : nullptr);
    for_each_tap(g, x, w, y, [&](int64_t xi, int64_t wi, int64_t yi) { y[yi] += x[xi] * w[wi]; });
    for (int64_t i = 0; f && i < y.size(); ++i) y[i] = activate(*f, y[i]);
  }};
}

/// Also the transposed convolution, where `dy` is its input.
Rule conv_backward_data(const ConvAttributes& attributes, bool bias) {
  return {.run = [g = ConvGeometry(attributes), bias](const RuleCall& call) {
    const PlainTensor &dy = call.in[0], &w = call.in[1];
    PlainTensor& dx = call.out[0];
    start_with_bias(dx, bias ? &call.in[2] : nullptr);
    for_each_tap(g, dx, w, dy,
                 [&](int64_t xi, int64_t wi, int64_t yi) { dx[xi] += dy[yi] * w[wi]; });
  }};
}

/// Sums become the single output.
void copy_sums(const RuleCall& call) {
  for (int64_t i = 0; i < call.out[0].size(); ++i)
    call.out[0][i] = call.sums[static_cast<size_t>(i)];
}

/// All samples in one go.
Rule conv_backward_weights_whole(const ConvBackwardWeights& op) {
  return {.run = [g = ConvGeometry(op.conv())](const RuleCall& call) {
    const PlainTensor &x = call.in[0], &dy = call.in[1];
    PlainTensor& dw = call.out[0];
    for (int64_t i = 0; i < dw.size(); ++i) dw[i] = 0;
    for_each_tap(g, x, dw, dy,
                 [&](int64_t xi, int64_t wi, int64_t yi) { dw[wi] += x[xi] * dy[yi]; });
  }};
}

Rule conv_backward_weights(const ConvBackwardWeights& op) {
  if (op.whole()) return conv_backward_weights_whole(op);
  return {.run =
              [g = ConvGeometry(op.conv())](const RuleCall& call) {
                const PlainTensor &x = call.in[0], &dy = call.in[1], &dw = call.out[0];
                for_each_tap(g, x, dw, dy, [&](int64_t xi, int64_t wi, int64_t yi) {
                  call.sums[static_cast<size_t>(wi)] += x[xi] * dy[yi];
                });
              },
          .sums = static_cast<size_t>(op.w_shape().elements()),
          .finish = copy_sums,
          .unbatched_in = {},
          .unbatched_out = {0}};
}

Rule bias_backward(int64_t channels) {
  return {.run =
              [](const RuleCall& call) {
                const PlainTensor& dy = call.in[0];
                const int64_t positions = dy.shape().elements_from(2);
                for (int64_t i = 0; i < dy.size(); ++i)
                  call.sums[static_cast<size_t>(i / positions % dy.extent(1))] += dy[i];
              },
          .sums = static_cast<size_t>(channels),
          .finish = copy_sums,
          .unbatched_in = {},
          .unbatched_out = {0}};
}

}  // namespace

Rule conv_rule(const KernelRequest& request) {
  const Op* op = request.op;
  if (const auto* conv = dynamic_cast<const Conv*>(op)) return conv_forward(*conv);
  if (const auto* data = dynamic_cast<const ConvBackwardData*>(op))
    return conv_backward_data(data->conv(), false);
  if (const auto* transpose = dynamic_cast<const ConvTranspose*>(op))
    return conv_backward_data(transpose->conv(), transpose->bias());
  if (const auto* weights = dynamic_cast<const ConvBackwardWeights*>(op))
    return conv_backward_weights(*weights);
  if (dynamic_cast<const BiasBackward*>(op)) return bias_backward(request.in[0].shape[1]);
  return {};
}

}  // namespace tutti
