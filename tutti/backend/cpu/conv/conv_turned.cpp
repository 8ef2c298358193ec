// Convolutions whose result is plain while their input is not, as where a network ends in logits of
// a few channels: a kernel for channels last writes into the workspace, and its result is
// transposed. oneDNN has only reference loops for such a pair of layouts, which take hundreds of
// times as long.

#include <utility>

#include "tutti/backend/cpu/conv/conv.h"

namespace tutti::backend {
namespace {

/// from[samples][positions][channels] -> to[samples][channels][positions]
template <class T>
void turn(const T* from, T* to, int64_t samples, int64_t positions, int64_t channels) {
  for (int64_t n = 0; n < samples; ++n, from += positions * channels)
    for (int64_t c = 0; c < channels; ++c, to += positions)
      for (int64_t p = 0; p < positions; ++p) to[p] = from[p * channels + c];
}

class TurnedKernel final : public Kernel {
 public:
  TurnedKernel(std::unique_ptr<Kernel> inner, const TensorDesc& y)
      : inner_(std::move(inner)), y_(y),
        inner_workspace_(workspace_part(inner_->workspace_bytes())) {}

  size_t workspace_bytes() const override { return inner_workspace_ + y_.bytes(); }

  void run(const KernelArgs& args) override {
    void* last = static_cast<std::byte*>(args.workspace) + inner_workspace_;
    KernelArgs inner = args;
    inner.out = &last;
    inner_->run(inner);
    const int64_t samples = y_.shape[0], channels = y_.shape[1],
                  positions = y_.shape.elements_from(2);
    if (y_.dtype == DType::f32)
      turn(static_cast<const float*>(last), static_cast<float*>(args.out[0]), samples, positions,
           channels);
    else
      turn(static_cast<const bf16*>(last), static_cast<bf16*>(args.out[0]), samples, positions,
           channels);
  }

 private:
  std::unique_ptr<Kernel> inner_;
  TensorDesc y_;
  size_t inner_workspace_;
};

/// Appends one candidate, "NAME, turned", for each implementation with channels last that is not
/// reference loops, for a plain result from an input that is not plain.
void append_turned(const KernelRequest& request, const graph::Op&, KernelCandidates& candidates) {
  const TensorDesc& y = request.out[0];
  if (!y.layout.is_plain() || request.in[0].layout.is_plain() ||
      (y.dtype != DType::f32 && y.dtype != DType::bf16))
    return;
  KernelRequest last = request;
  last.out[0].layout = Layout::channels_last(y.shape.rank());
  for (KernelCandidate& c : cpu_kernels().kernels(last)) {
    // A second kind of reference loops would only be measured, for minutes.
    if (c.speed != KernelSpeed::fast) continue;
    c.name += ", turned";
    c.out[0] = y;
    if (c.make)
      c.make = [make = std::move(c.make), y]() -> std::unique_ptr<Kernel> {
        return std::make_unique<TurnedKernel>(make(), y);
      };
    candidates.push_back(std::move(c));
  }
}

}  // namespace

void register_turned_conv(KernelTable& table) {
  table.add_adapter<ops::Conv, ops::ConvBackwardData>(append_turned, ConvPlace::turned);
}

}  // namespace tutti::backend
