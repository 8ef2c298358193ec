#include "tutti/backend/cpu/conv/conv_turned.h"

#include <utility>

#include "tutti/backend/cpu/conv/conv.h"
#include "tutti/ops/conv.h"

namespace tutti {
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

bool is_turned(const KernelRequest& r) {
  const bool knows = dynamic_cast<const Conv*>(r.op) || dynamic_cast<const ConvBackwardData*>(r.op);
  return knows && r.out[0].layout.is_plain() && !r.in[0].layout.is_plain() &&
         (r.out[0].dtype == DType::f32 || r.out[0].dtype == DType::bf16);
}

}  // namespace

void append_turned_conv_candidates(const KernelRequest& request,
                                   std::vector<KernelCandidate>& candidates) {
  if (!is_turned(request)) return;
  KernelRequest last = request;
  last.out[0].layout = Layout::channels_last(request.out[0].shape.rank());
  std::vector<KernelCandidate> inner;
  append_conv_candidates(last, inner);
  for (KernelCandidate& c : inner) {
    // A second kind of reference loops would only be measured, for minutes.
    if (c.speed != KernelSpeed::fast) continue;
    c.name += ", turned";
    c.out[0] = request.out[0];
    if (c.make)
      c.make = [make = std::move(c.make), y = request.out[0]]() -> std::unique_ptr<Kernel> {
        return std::make_unique<TurnedKernel>(make(), y);
      };
    candidates.push_back(std::move(c));
  }
}

}  // namespace tutti
