#include "tutti/ops/conv.h"

#include "tutti/backend/reference/rules.h"
#include "tutti/ops/conv_transpose.h"

namespace tutti::backend {
namespace {

/// Three spatial dimensions; the first is 1 in a 2-D convolution.
struct ConvGeometry {
  std::array<int64_t, 3> stride{1, 1, 1}, dilation{1, 1, 1}, pad{0, 0, 0};
  int64_t groups = 1;

  explicit ConvGeometry(const ops::ConvAttributes& a) : groups(a.groups) {
    for (int d = 0; d < a.spatial; ++d) {
      const auto to = static_cast<size_t>(3 - a.spatial + d), from = static_cast<size_t>(d);
      stride[to] = a.stride[from];
      dilation[to] = a.dilation[from];
      pad[to] = a.pad_low[from];
    }
  }
};

/// Products along one row of y, all with the same element of w.
struct TapRow {
  int64_t x, x_step;  ///< index of the first element of x, and the distance between elements
  int64_t w;
  int64_t y;  ///< index of the first element of y; they are neighbours
  int64_t count;
};

/// Calls row(TapRow) for every product that a convolution x, w -> y sums.
template <class Row>
void for_each_row(const ConvGeometry& g, const PlainTensor& x, const PlainTensor& w,
                  const PlainTensor& y, Row row) {
  const int64_t outputs = y.extent(1) / g.groups, inputs = x.extent(1) / g.groups;
  const auto from = [&](size_t d, int64_t o, int64_t k) {
    return o * g.stride[d] - g.pad[d] + k * g.dilation[d];
  };
  // Returns the outputs [first, last) along d for which tap k has an input.
  const auto range = [&](size_t d, int64_t k) {
    const int64_t all = y.extent(static_cast<int>(d) + 2), in = x.extent(static_cast<int>(d) + 2);
    int64_t first = 0, last = all;
    while (first < all && from(d, first, k) < 0) ++first;
    while (last > first && from(d, last - 1, k) >= in) --last;
    return std::array{first, last};
  };
  for (int64_t n = 0; n < y.extent(0); ++n)
    for (int64_t k = 0; k < y.extent(1); ++k)
      for (int64_t c = 0; c < inputs; ++c)
        for (int64_t kd = 0; kd < w.extent(2); ++kd)
          for (int64_t kh = 0; kh < w.extent(3); ++kh)
            for (int64_t kw = 0; kw < w.extent(4); ++kw) {
              const int64_t channel = k / outputs * inputs + c;
              const auto [d0, d1] = range(0, kd);
              const auto [h0, h1] = range(1, kh);
              const auto [w0, w1] = range(2, kw);
              for (int64_t od = d0; od < d1; ++od)
                for (int64_t oh = h0; oh < h1; ++oh)
                  row({x.at(n, channel, from(0, od, kd), from(1, oh, kh), from(2, w0, kw)),
                       g.stride[2], w.at(k, c, kd, kh, kw), y.at(n, k, od, oh, w0), w1 - w0});
            }
}

double sum_of(const TapRow& t, const PlainTensor& x, const PlainTensor& dy) {
  double sum = 0;
  for (int64_t i = 0; i < t.count; ++i) sum += x[t.x + i * t.x_step] * dy[t.y + i];
  return sum;
}

/// Sets every element to its channel's bias, or to 0.
void start_with_bias(PlainTensor& y, const PlainTensor* bias) {
  const int64_t positions = y.shape().elements_from(2);
  for (int64_t i = 0; i < y.size(); ++i) y[i] = bias ? (*bias)[i / positions % y.extent(1)] : 0;
}

Rule conv_forward(const ops::Conv& op) {
  return {.run = [g = ConvGeometry(op.conv()), bias = op.bias(),
                  f = op.activation()](const RuleCall& call) {
    const PlainTensor &x = call.in[0], &w = call.in[1];
    PlainTensor& y = call.out[0];
    start_with_bias(y, bias ? &call.in[2] : nullptr);
    for_each_row(g, x, w, y, [&](const TapRow& t) {
      const double factor = w[t.w];
      for (int64_t i = 0; i < t.count; ++i) y[t.y + i] += x[t.x + i * t.x_step] * factor;
    });
    for (int64_t i = 0; f && i < y.size(); ++i) y[i] = activate(*f, y[i]);
  }};
}

/// Also serves the transposed convolution, where `dy` is its input.
Rule conv_backward_data(const ops::ConvAttributes& attributes, bool bias) {
  return {.run = [g = ConvGeometry(attributes), bias](const RuleCall& call) {
    const PlainTensor &dy = call.in[0], &w = call.in[1];
    PlainTensor& dx = call.out[0];
    start_with_bias(dx, bias ? &call.in[2] : nullptr);
    for_each_row(g, dx, w, dy, [&](const TapRow& t) {
      const double factor = w[t.w];
      for (int64_t i = 0; i < t.count; ++i) dx[t.x + i * t.x_step] += dy[t.y + i] * factor;
    });
  }};
}

/// Copies sums to the single output.
void copy_sums(const RuleCall& call) {
  for (int64_t i = 0; i < call.out[0].size(); ++i)
    call.out[0][i] = call.sums[static_cast<size_t>(i)];
}

/// Handles all samples at once.
Rule conv_backward_weights_whole(const ops::ConvBackwardWeights& op) {
  return {.run = [g = ConvGeometry(op.conv())](const RuleCall& call) {
    const PlainTensor &x = call.in[0], &dy = call.in[1];
    PlainTensor& dw = call.out[0];
    for (int64_t i = 0; i < dw.size(); ++i) dw[i] = 0;
    for_each_row(g, x, dw, dy, [&](const TapRow& t) { dw[t.w] += sum_of(t, x, dy); });
  }};
}

Rule conv_backward_weights(const ops::ConvBackwardWeights& op) {
  if (op.whole()) return conv_backward_weights_whole(op);
  return {.run =
              [g = ConvGeometry(op.conv())](const RuleCall& call) {
                const PlainTensor &x = call.in[0], &dy = call.in[1], &dw = call.out[0];
                for_each_row(g, x, dw, dy, [&](const TapRow& t) {
                  call.sums[static_cast<size_t>(t.w)] += sum_of(t, x, dy);
                });
              },
          .sums = static_cast<size_t>(op.w_shape().elements()),
          .finish = copy_sums,
          .unbatched_in = {},
          .unbatched_out = {0}};
}

Rule bias_backward(const ops::BiasBackward&, const KernelRequest& request) {
  const int64_t channels = request.in[0].shape[1];
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

void register_conv_rules(RuleTable& table) {
  table.add<ops::Conv>(conv_forward);
  table.add<ops::ConvBackwardData>(
      [](const ops::ConvBackwardData& op) { return conv_backward_data(op.conv(), false); });
  table.add<ops::ConvTranspose>(
      [](const ops::ConvTranspose& op) { return conv_backward_data(op.conv(), op.bias()); });
  table.add<ops::ConvBackwardWeights>(conv_backward_weights);
  table.add<ops::BiasBackward>(bias_backward);
}

}  // namespace tutti::backend
