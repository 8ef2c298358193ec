// cpu:winograd: convolutions of channels-last tensors with 3 x 3 or 3 x 3 x 3 taps at stride 1,
// ungrouped, any dilation and padding, with fewer multiplications (winograd.h): forward,
// gradients of data and gradients of weights.

#include <fmt/format.h>

#include <functional>
#include <memory>
#include <string>

#include "tutti/backend/cpu/conv/conv.h"
#include "tutti/backend/cpu/conv/winograd_kernels.h"
#include "tutti/backend/cpu/kernel/sample.h"
#include "tutti/backend/cpu/matrix/matrix_rows.h"
#include "tutti/backend/cpu/matrix/matrix_tile.h"

namespace tutti::backend {
namespace {

using matrix::Sliding;

/// With fewer channels on either side the transforms cost more than they save.
constexpr int64_t kFewestChannels = 16;

std::string refusal_of_winograd(const ConvRequest& r) {
  const ops::ConvAttributes& a = r.a;
  if (a.spatial < 2) return "only of two or three dimensions";
  if (a.groups != 1) return "only ungrouped";
  for (int d = 0; d < a.spatial; ++d)
    if (r.w.shape[d + 2] != winograd::kTaps || a.stride[static_cast<size_t>(d)] != 1)
      return "only 3 taps a dimension, at stride 1";
  for (const TensorDesc* d : {&r.x, &r.y})
    if (d->layout != Layout::channels_last(d->shape.rank())) return "only channels last";
  const bool pairs = r.x.dtype == DType::bf16 && r.y.dtype == DType::bf16;
  if (pairs && !matrix::kFastPairs) return "bf16 where TUTTI_MARCH has no products of bf16 pairs";
  if (!pairs && (r.x.dtype != DType::f32 || r.y.dtype != DType::f32)) return "not these types";
  if (pairs && r.from().shape[1] % 2 != 0) return "an odd number of channels has no pairs";
  if (r.x.shape[1] < kFewestChannels || r.y.shape[1] < kFewestChannels)
    return fmt::format("fewer than {} channels", kFewestChannels);
  if (r.activation && r.activation->kind != ops::ActivationKind::relu &&
      r.activation->kind != ops::ActivationKind::leaky_relu)
    return "no activation but ReLU and leaky ReLU";
  return {};
}

/// Returns the convolution from dy to dx: results and data exchange places, and the padding becomes
/// the taps' reach beyond it.
Sliding backward_sliding(const Sliding& s) {
  Sliding t = s;
  std::swap(t.x, t.y);
  for (size_t d = 0; d < t.pad.size(); ++d) t.pad[d] = s.dilation[d] * (s.kernel[d] - 1) - s.pad[d];
  return t;
}

std::function<std::unique_ptr<Kernel>()> maker_of_winograd(const ConvRequest& r) {
  const Sliding sliding = Sliding::of(r.a, r.x.shape, r.y.shape, r.w.shape);
  const int64_t samples = r.x.shape[0], channels = r.x.shape[1], outputs = r.y.shape[1];
  if (r.makes_weights())
    return [p = winograd::FilterProblem{sliding, samples, channels, outputs,
                                        r.whole ? r.request.team : 0},
            type = r.x.dtype] { return winograd::make_filter_kernel(p, type); };
  const bool data = r.makes_data();
  winograd::DataProblem p{.sliding = data ? backward_sliding(sliding) : sliding,
                          .samples = samples,
                          .from = data ? outputs : channels,
                          .to = data ? channels : outputs,
                          .mirrored = data,
                          .bias = r.bias,
                          .relu = r.activation.has_value()};
  if (r.activation && r.activation->kind == ops::ActivationKind::leaky_relu)
    p.slope = r.activation->slope;
  return [p, type = r.x.dtype] { return winograd::make_data_kernel(p, type); };
}

KernelCandidates winograd_conv(const ConvRequest& r) {
  KernelCandidate c = candidate_for(r.request, "cpu:winograd");
  c.refusal = refusal_of_winograd(r);
  r.want_weights(c, matrix::panels_layout(r.w.shape.rank(), r.makes_data()));
  if (c.refusal.empty()) {
    if (r.x.dtype == DType::bf16) c.error = winograd::relative_error(r.a.spatial);
    c.make = maker_of_winograd(r);
  }
  return {std::move(c)};
}

}  // namespace

void register_winograd_conv(KernelTable& table) {
  add_shared_conv(table, winograd_conv, ConvPlace::shared_winograd);
  add_conv(table, winograd_conv, ConvPlace::winograd);
}

}  // namespace tutti::backend
