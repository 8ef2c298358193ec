// SwiGLU, element by element: operands with the same layout are contiguous.

#include <algorithm>
#include <memory>

#include "tutti/backend/cpu/kernel/sample.h"
#include "tutti/backend/cpu/sequence/attention_rows.h"
#include "tutti/backend/cpu/sequence/channels_last.h"
#include "tutti/ops/sequence/swiglu.h"

namespace tutti::backend {
namespace {

using attention::for_each_lanes;
using simd::Floats;

template <class T>
class SwiGluKernel final : public Kernel {
 public:
  explicit SwiGluKernel(const KernelRequest& r) : n_(r.out[0].elements()) {}

  void run(const KernelArgs& args) override {
    const auto *g = static_cast<const T*>(args.in[0]), *u = static_cast<const T*>(args.in[1]);
    auto* const y = static_cast<T*>(args.out[0]);
    for_each_lanes(n_, [&](int64_t i, auto lanes) {
      const Floats v = simd::load(g + i, lanes);
      simd::store(y + i, v * simd::sigmoid(v) * simd::load(u + i, lanes), lanes);
    });
  }

 private:
  int64_t n_;
};

template <class T>
class SwiGluGradKernel final : public Kernel {
 public:
  explicit SwiGluGradKernel(const KernelRequest& r) : n_(r.out[0].elements()) {}

  void run(const KernelArgs& args) override {
    const auto *dy = static_cast<const T*>(args.in[0]), *g = static_cast<const T*>(args.in[1]),
               *u = static_cast<const T*>(args.in[2]);
    auto *const dg = static_cast<T*>(args.out[0]), *const du = static_cast<T*>(args.out[1]);
    for_each_lanes(n_, [&](int64_t i, auto lanes) {
      const Floats d = simd::load(dy + i, lanes), v = simd::load(g + i, lanes),
                   s = simd::sigmoid(v);
      simd::store(dg + i, d * simd::load(u + i, lanes) * s * (1.f + v * (1.f - s)), lanes);
      simd::store(du + i, d * v * s, lanes);
    });
  }

 private:
  int64_t n_;
};

template <template <class> class K>
KernelCandidate swiglu_kernel(const KernelRequest& r) {
  KernelCandidate c = candidate_for(r, "cpu:swiglu");
  c.refusal = refusal_of_layouts(r);
  for (const auto* side : {&r.in, &r.out})
    for (const TensorDesc& d : *side)
      if (d.layout != r.out[0].layout) c.refusal = "layouts differ";
  choose_kernel<K>(c, r.out[0].dtype, "gate", r);
  return c;
}

}  // namespace

void register_swiglu_kernels(KernelTable& table) {
  table.add<ops::SwiGlu>(channels_last(swiglu_kernel<SwiGluKernel>));
  table.add<ops::SwiGluGrad>(channels_last(swiglu_kernel<SwiGluGradKernel>));
}

}  // namespace tutti::backend
