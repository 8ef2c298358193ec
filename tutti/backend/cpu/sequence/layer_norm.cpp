// Layer norm and RMS norm, position by position: a position's channels are contiguous.

#include <algorithm>
#include <cmath>
#include <memory>

#include "tutti/backend/cpu/kernel/kernel_table.h"
#include "tutti/backend/cpu/kernel/sample.h"
#include "tutti/backend/cpu/sequence/attention_rows.h"
#include "tutti/backend/cpu/sequence/channels_last.h"
#include "tutti/ops/sequence/layer_norm.h"

namespace tutti::backend {
namespace {

using attention::for_each_lanes;
using simd::Floats;

struct PositionStatistics {
  float mean = 0, inverse = 0;
};

/// Takes two passes: a difference of large sums would lose the variance of channels far from 0.
template <class T>
PositionStatistics statistics_of(const ops::LayerNormAttributes& a, const T* x, int64_t channels) {
  PositionStatistics statistics;
  const auto count = static_cast<float>(channels);
  if (a.kind == ops::LayerNormKind::layer) {
    Floats sum{};
    for_each_lanes(channels, [&](int64_t c, auto lanes) { sum += simd::load(x + c, lanes); });
    statistics.mean = simd::sum(sum) / count;
  }
  Floats squares{};
  for_each_lanes(channels, [&](int64_t c, auto lanes) {
    const Floats d = simd::first_lanes(simd::load(x + c, lanes) - statistics.mean, lanes.n);
    squares += d * d;
  });
  statistics.inverse = 1 / std::sqrt(simd::sum(squares) / count + a.epsilon);
  return statistics;
}

template <class T>
class LayerNormKernel final : public Kernel {
 public:
  LayerNormKernel(const KernelRequest& r, const ops::LayerNorm& op)
      : a_(op.norm()), channels_(r.in[0].shape[1]), positions_(r.in[0].elements() / channels_) {}

  void run(const KernelArgs& args) override {
    const auto* x = static_cast<const T*>(args.in[0]);
    const auto* const gamma = static_cast<const float*>(args.in[1]);
    const auto* const beta = a_.has_beta() ? static_cast<const float*>(args.in[2]) : nullptr;
    auto* y = static_cast<T*>(args.out[0]);
    for (int64_t p = 0; p < positions_; ++p, x += channels_, y += channels_) {
      const PositionStatistics s = statistics_of(a_, x, channels_);
      for_each_lanes(channels_, [&](int64_t c, auto lanes) {
        Floats v = (simd::load(x + c, lanes) - s.mean) * s.inverse * simd::load(gamma + c, lanes);
        if (beta) v += simd::load(beta + c, lanes);
        simd::store(y + c, v, lanes);
      });
    }
  }

 private:
  ops::LayerNormAttributes a_;
  int64_t channels_, positions_;
};

/// The state: dgamma, then dbeta.
template <class T>
class LayerNormGradKernel final : public Kernel {
 public:
  LayerNormGradKernel(const KernelRequest& r, const ops::LayerNormGrad& op)
      : a_(op.norm()), channels_(r.in[0].shape[1]), positions_(r.in[0].elements() / channels_) {}

  size_t state_bytes() const override { return static_cast<size_t>(2 * channels_) * sizeof(float); }

  void run(const KernelArgs& args) override {
    const auto *dy = static_cast<const T*>(args.in[0]), *x = static_cast<const T*>(args.in[1]);
    const auto* const gamma = static_cast<const float*>(args.in[2]);
    auto* dx = static_cast<T*>(args.out[0]);
    auto* const dgamma = static_cast<float*>(args.state);
    if (args.first) std::fill_n(dgamma, 2 * channels_, 0.f);
    for (int64_t p = 0; p < positions_; ++p, dy += channels_, x += channels_, dx += channels_)
      go_back(dy, x, gamma, dx, dgamma);
  }

  void finish(const FinishArgs& args) override {
    for (size_t o = 0; o < (a_.has_beta() ? 2U : 1U); ++o) {
      auto* const out = static_cast<float*>(args.out[1 + o]);
      const auto [begin, end] = share(channels_, args.thread, args.threads);
      std::fill(out + begin, out + end, 0.f);
      for (const void* state : args.states)
        simd::add(out + begin,
                  static_cast<const float*>(state) + static_cast<int64_t>(o) * channels_ + begin,
                  end - begin);
    }
  }

 private:
  void go_back(const T* dy, const T* x, const float* gamma, T* dx, float* dgamma) const {
    const PositionStatistics s = statistics_of(a_, x, channels_);
    float* const dbeta = dgamma + channels_;
    Floats all{}, along{};
    for_each_lanes(channels_, [&](int64_t c, auto lanes) {
      const Floats d = simd::load(dy + c, lanes),
                   z = simd::first_lanes((simd::load(x + c, lanes) - s.mean) * s.inverse, lanes.n),
                   g = d * simd::load(gamma + c, lanes);
      all += g;
      along += g * z;
      simd::store(dgamma + c, simd::load(dgamma + c, lanes) + d * z, lanes);
      if (a_.has_beta()) simd::store(dbeta + c, simd::load(dbeta + c, lanes) + d, lanes);
    });
    const auto count = static_cast<float>(channels_);
    const float mean = a_.kind == ops::LayerNormKind::layer ? simd::sum(all) / count : 0,
                slope = simd::sum(along) / count;
    for_each_lanes(channels_, [&](int64_t c, auto lanes) {
      const Floats g = simd::load(dy + c, lanes) * simd::load(gamma + c, lanes),
                   z = (simd::load(x + c, lanes) - s.mean) * s.inverse;
      simd::store(dx + c, s.inverse * (g - mean - z * slope), lanes);
    });
  }

  ops::LayerNormAttributes a_;
  int64_t channels_, positions_;
};

template <template <class> class K, class O>
KernelCandidate layer_norm_kernel(const KernelRequest& r, const O& op) {
  KernelCandidate c = candidate_for(r, "cpu:layer_norm");
  for (const auto* side : {&r.in, &r.out})
    for (const TensorDesc& d : *side)
      if (d.shape.rank() > 2 && d.layout != Layout::channels_last(d.shape.rank()))
        c.refusal = "only channels last";
  choose_kernel<K>(c, r.out[0].dtype, "norm", r, op);
  return c;
}

}  // namespace

void register_layer_norm_kernels(KernelTable& table) {
  table.add<ops::LayerNorm>(channels_last(layer_norm_kernel<LayerNormKernel, ops::LayerNorm>));
  table.add<ops::LayerNormGrad>(
      channels_last(layer_norm_kernel<LayerNormGradKernel, ops::LayerNormGrad>));
}

}  // namespace tutti::backend
