#include "tutti/backend/cpu/conv/winograd_conv.h"

#include <fmt/format.h>

#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "tutti/backend/cpu/conv/matrix_conv.h"
#include "tutti/backend/cpu/conv/winograd_kernels.h"
#include "tutti/backend/cpu/kernel/sample.h"
#include "tutti/backend/cpu/matrix/matrix_tile.h"
#include "tutti/ops/conv.h"

namespace tutti {
namespace {

using matrix::Sliding;

enum class Makes : uint8_t { results, data, filter };

struct WinogradRequest {
  const ConvAttributes* a = nullptr;
  Makes makes = Makes::results;
  TensorDesc x, y, w;
  bool bias = false;
  int team = 0;  ///< FilterProblem::team
  std::optional<ActivationAttributes> activation{};
};

std::optional<WinogradRequest> winograd_request(const KernelRequest& r) {
  if (const auto* op = dynamic_cast<const Conv*>(r.op))
    return WinogradRequest{.a = &op->conv(),
                           .x = r.in[0],
                           .y = r.out[0],
                           .w = r.in[1],
                           .bias = op->bias(),
                           .activation = op->activation()};
  if (const auto* op = dynamic_cast<const ConvBackwardData*>(r.op))
    return WinogradRequest{
        .a = &op->conv(), .makes = Makes::data, .x = r.out[0], .y = r.in[0], .w = r.in[1]};
  if (const auto* op = dynamic_cast<const ConvBackwardWeights*>(r.op))
    return WinogradRequest{.a = &op->conv(),
                           .makes = Makes::filter,
                           .x = r.in[0],
                           .y = r.in[1],
                           .w = r.out[0],
                           .team = op->whole() ? r.team : 0};
  return std::nullopt;
}

/// With fewer channels on either side the transforms cost more than they save.
constexpr int64_t kFewestChannels = 16;

std::string refusal_of_winograd(const WinogradRequest& r) {
  const ConvAttributes& a = *r.a;
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
  if (pairs && (r.makes == Makes::data ? r.y : r.x).shape[1] % 2 != 0)
    return "an odd number of channels has no pairs";
  if (r.x.shape[1] < kFewestChannels || r.y.shape[1] < kFewestChannels)
    return fmt::format("fewer than {} channels", kFewestChannels);
  if (r.activation && r.activation->kind != ActivationKind::relu &&
      r.activation->kind != ActivationKind::leaky_relu)
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

std::function<std::unique_ptr<Kernel>()> maker_of_winograd(const WinogradRequest& r) {
  const Sliding sliding = Sliding::of(*r.a, r.x.shape, r.y.shape, r.w.shape);
  const int64_t samples = r.x.shape[0], channels = r.x.shape[1], outputs = r.y.shape[1];
  if (r.makes == Makes::filter)
    return [p = winograd::FilterProblem{sliding, samples, channels, outputs, r.team},
            type = r.x.dtype] { return winograd::make_filter_kernel(p, type); };
  const bool data = r.makes == Makes::data;
  winograd::DataProblem p{.sliding = data ? backward_sliding(sliding) : sliding,
                          .samples = samples,
                          .from = data ? outputs : channels,
                          .to = data ? channels : outputs,
                          .mirrored = data,
                          .bias = r.bias,
                          .relu = r.activation.has_value()};
  if (r.activation && r.activation->kind == ActivationKind::leaky_relu)
    p.slope = r.activation->slope;
  return [p, type = r.x.dtype] { return winograd::make_data_kernel(p, type); };
}

}  // namespace

void append_winograd_candidate(const KernelRequest& request,
                               std::vector<KernelCandidate>& candidates) {
  const auto r = winograd_request(request);
  if (!r) return;
  const bool filter = r->makes == Makes::filter;
  KernelCandidate c = candidate_for(request, "cpu:winograd");
  TensorDesc& w = filter ? c.out[0] : c.in[1];
  const bool free = filter ? request.out_free[0] : request.in_free[1];
  const TensorDesc wanted{DType::f32, w.shape,
                          matrix::panels_layout(w.shape.rank(), r->makes == Makes::data)};
  c.refusal = refusal_of_winograd(*r);
  if (c.refusal.empty() && !free && w != wanted)
    c.refusal = "weights must be " + wanted.to_string();
  if (c.refusal.empty()) {
    w = wanted;
    if (r->x.dtype == DType::bf16) c.error = winograd::relative_error(r->a->spatial);
    c.make = maker_of_winograd(*r);
  }
  candidates.push_back(std::move(c));
}

}  // namespace tutti
