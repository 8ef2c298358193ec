// bf16 convolutions computed in f32: a tile is widened into the workspace, convolved by an f32
// kernel with f32 weights, and the result narrowed. Both conversions stay in the core's cache, so
// on processors without fast bf16 arithmetic (vdpbf16ps at half rate, or none) this is faster than
// native bf16, and it rounds less. Measurement decides between it and the native candidates.

#include <algorithm>
#include <array>
#include <utility>

#include "tutti/backend/cpu/conv/conv.h"
#include "tutti/backend/cpu/simd/simd.h"
#include "tutti/base/error.h"

namespace tutti::backend {
namespace {

constexpr size_t kMostOperands = 3;  // x, w, bias

int64_t storage(const TensorDesc& desc) { return desc.layout.storage_elements(desc.shape); }

void widen(const bf16* from, float* to, int64_t n) {
  int64_t i = 0;
  for (; i + simd::kLanes <= n; i += simd::kLanes)
    simd::store(to + i, simd::load(from + i, simd::AllLanes{}), simd::AllLanes{});
  for (; i < n; ++i) to[i] = static_cast<float>(from[i]);
}

void narrow(const float* from, bf16* to, int64_t n) {
  int64_t i = 0;
  for (; i + simd::kLanes <= n; i += simd::kLanes)
    simd::store(to + i, simd::load(from + i, simd::AllLanes{}), simd::AllLanes{});
  for (; i < n; ++i) to[i] = bf16(from[i]);
}

/// Element counts of the operands that are bf16 outside and f32 inside; 0 for the others.
struct Conversions {
  std::vector<int64_t> in, out;
};

class WidenedKernel final : public Kernel {
 public:
  WidenedKernel(std::unique_ptr<Kernel> inner, Conversions conversions)
      : inner_(std::move(inner)), conversions_(std::move(conversions)),
        inner_workspace_(workspace_part(inner_->workspace_bytes())) {}

  size_t workspace_bytes() const override {
    size_t bytes = inner_workspace_;
    for (const auto* list : {&conversions_.in, &conversions_.out})
      for (const int64_t n : *list) bytes += workspace_part(static_cast<size_t>(n) * sizeof(float));
    return bytes;
  }
  size_t state_bytes() const override { return inner_->state_bytes(); }
  int state_output() const override { return inner_->state_output(); }

  void run(const KernelArgs& args) override {
    std::array<void*, kMostOperands> in{};
    void* out = args.out[0];
    auto* place = static_cast<std::byte*>(args.workspace) + inner_workspace_;
    const auto take = [&place](int64_t n) {
      return reinterpret_cast<float*>(
          std::exchange(place, place + workspace_part(static_cast<size_t>(n) * sizeof(float))));
    };
    for (size_t i = 0; i < conversions_.in.size(); ++i) {
      in[i] = args.in[i];
      if (const int64_t n = conversions_.in[i]) {
        float* const wide = take(n);
        widen(static_cast<const bf16*>(args.in[i]), wide, n);
        in[i] = wide;
      }
    }
    if (conversions_.out[0]) out = take(conversions_.out[0]);
    KernelArgs inner = args;
    inner.in = in.data();
    inner.out = &out;
    inner_->run(inner);
    if (const int64_t n = conversions_.out[0])
      narrow(static_cast<const float*>(out), static_cast<bf16*>(args.out[0]), n);
  }
  void finish(const FinishArgs& args) override { inner_->finish(args); }

 private:
  std::unique_ptr<Kernel> inner_;
  Conversions conversions_;
  size_t inner_workspace_;
};

/// Returns the same request with f32 activations, and the operands that differ.
KernelRequest widened(const KernelRequest& request, Conversions& conversions) {
  KernelRequest wide = request;
  const auto widen_all = [](std::vector<TensorDesc>& descs, const std::vector<bool>& free,
                            std::vector<int64_t>& counts) {
    for (size_t i = 0; i < descs.size(); ++i) {
      const bool convert = descs[i].dtype == DType::bf16 && !free[i];
      counts.push_back(convert ? storage(descs[i]) : 0);
      if (convert) descs[i].dtype = DType::f32;
    }
  };
  widen_all(wide.in, wide.in_free, conversions.in);
  widen_all(wide.out, wide.out_free, conversions.out);
  return wide;
}

/// Appends one candidate per f32 implementation for a bf16 convolution.
void append_widened(const KernelRequest& request, const graph::Op&, KernelCandidates& candidates) {
  Conversions conversions;
  const KernelRequest wide = widened(request, conversions);
  CHECK(wide.in.size() <= kMostOperands && wide.out.size() == 1,
        "a convolution has at most {} inputs and one output", kMostOperands);
  if (wide.in[0].dtype == request.in[0].dtype) return;  // not bf16
  for (KernelCandidate& c : cpu_kernels().kernels(wide)) {
    if (std::ranges::any_of(candidates, [&](const KernelCandidate& taken) {
          return c.name.starts_with("cpu:") && taken.name == c.name && taken.refusal.empty() &&
                 taken.error <= 1;
        }))
      continue;  // it accepts bf16 itself
    c.name = "widened " + c.name;
    for (size_t i = 0; i < c.in.size(); ++i)
      if (conversions.in[i]) c.in[i].dtype = DType::bf16;
    if (conversions.out[0]) c.out[0].dtype = DType::bf16;
    if (c.make)
      c.make = [make = std::move(c.make), conversions]() -> std::unique_ptr<Kernel> {
        return std::make_unique<WidenedKernel>(make(), conversions);
      };
    candidates.push_back(std::move(c));
  }
}

}  // namespace

void register_widened_conv(KernelTable& table) {
  table.add_adapter<ops::Conv, ops::ConvBackwardData>(append_widened, ConvPlace::widened);
  table.add_adapter<ops::ConvBackwardWeights>(
      [](const KernelRequest& r, const ops::ConvBackwardWeights& op, KernelCandidates& candidates) {
        if (!op.whole()) append_widened(r, op, candidates);
      },
      ConvPlace::widened);
}

}  // namespace tutti::backend
