// Computes the gradient of a convolution's data as a forward convolution: where the stride is 1, dx
// is dy convolved with the weights whose windows are mirrored about their centres and whose inputs
// and outputs are exchanged. oneDNN's brgemm kernels, faster than its others, exist only forward.

#include <optional>
#include <utility>

#include "tutti/backend/cpu/conv/conv.h"

namespace tutti::backend {
namespace {

/// Returns the layout in which one convolution's weights lie for the other convolution.
Layout turned_layout(const Layout& layout) {
  Layout turned = layout.with_first_two_swapped();
  turned.mirrored = !layout.mirrored;
  return turned;
}

/// Returns the attributes of the convolution that leads from dy to dx; nothing if there is none.
std::optional<ops::ConvAttributes> mirrored(const ops::ConvBackwardData& op, const Shape& w) {
  ops::ConvAttributes a = op.conv();
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

/// Appends one candidate per brgemm kernel, "mirrored NAME", for a stride of 1 without groups and a
/// padding less than the window. It requests weights in a mirrored layout, into which they are
/// packed once a step.
void append_mirrored(const KernelRequest& request, const ops::ConvBackwardData& op,
                     KernelCandidates& candidates) {
  const TensorDesc& w = request.in[1];
  if (!request.in_free[1] && !w.layout.mirrored) return;
  const std::optional<ops::ConvAttributes> attributes = mirrored(op, w.shape);
  if (!attributes) return;

  const ops::Conv forward(*attributes, false);
  KernelRequest turned = request;
  turned.op = &forward;
  std::swap(turned.in[1].shape[0], turned.in[1].shape[1]);
  turned.in[1].layout = request.in_free[1] ? Layout::plain() : turned_layout(w.layout);
  for (KernelCandidate& c : cpu_kernels().kernels(turned)) {
    if (!c.refusal.empty() || c.name.find("brg") == std::string::npos) continue;
    c.name = "mirrored " + c.name;
    c.in[1].shape = w.shape;
    c.in[1].layout = turned_layout(c.in[1].layout);
    candidates.push_back(std::move(c));
  }
}

}  // namespace

void register_mirrored_conv(KernelTable& table) {
  table.add_adapter<ops::ConvBackwardData>(append_mirrored, ConvPlace::mirrored);
}

}  // namespace tutti::backend
