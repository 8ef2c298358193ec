#include "tutti/backend/cpu/conv/conv_mirrored.h"

#include <optional>
#include <utility>

#include "tutti/backend/cpu/conv/conv.h"
#include "tutti/ops/conv.h"

namespace tutti {
namespace {

/// Returns the layout in which one convolution's weights lie for the other convolution.
Layout turned_layout(const Layout& layout) {
  Layout turned = layout.with_first_two_swapped();
  turned.mirrored = !layout.mirrored;
  return turned;
}

/// Returns the attributes of the convolution that leads from dy to dx; nothing if there is none.
std::optional<ConvAttributes> mirrored(const ConvBackwardData& op, const Shape& w) {
  ConvAttributes a = op.conv();
  if (a.groups != 1) return std::nullopt;
  for (int i = 0; i < a.spatial; ++i) {
    const auto k = static_cast<size_t>(i);
    const int64_t reach = a.dilation[k] * (w[2 + i] - 1);
    if (a.stride[k] != 1 || a.pad_low[k] > reach || a.pad_high[k] > reach) return std::nullopt;
    a.pad_low[k] = reach - a.pad_low[k];
    a.pad_high[k] = reach - a.pad_high[k];
  }
  return a;
}

}  // namespace

void append_mirrored_conv_candidates(const KernelRequest& request,
                                     std::vector<KernelCandidate>& candidates) {
  const auto* data = dynamic_cast<const ConvBackwardData*>(request.op);
  if (!data) return;
  const TensorDesc& w = request.in[1];
  if (!request.in_free[1] && !w.layout.mirrored) return;
  const std::optional<ConvAttributes> attributes = mirrored(*data, w.shape);
  if (!attributes) return;

  const Conv forward(*attributes, false);
  KernelRequest turned = request;
  turned.op = &forward;
  std::swap(turned.in[1].shape[0], turned.in[1].shape[1]);
  turned.in[1].layout = request.in_free[1] ? Layout::plain() : turned_layout(w.layout);
  std::vector<KernelCandidate> inner;
  append_conv_candidates(turned, inner);
  for (KernelCandidate& c : inner) {
    if (!c.refusal.empty() || c.name.find("brg") == std::string::npos) continue;
    c.name = "mirrored " + c.name;
    c.in[1].shape = w.shape;
    c.in[1].layout = turned_layout(c.in[1].layout);
    candidates.push_back(std::move(c));
  }
}

}  // namespace tutti
