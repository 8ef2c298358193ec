// Dense layers and their gradients: register tiles of sixteen floats. bf16 operands are widened
// when they are loaded, weights are used in f32, sums are f32.

#include <algorithm>
#include <type_traits>

#include "tutti/backend/cpu/generic.h"
#include "tutti/backend/cpu/outer_product.h"
#include "tutti/backend/cpu/plain_samples.h"
#include "tutti/backend/cpu/simd.h"
#include "tutti/ops/dense.h"

namespace tutti {
namespace {

using product::Left, product::RowMajor;
using simd::AllLanes, simd::Floats, simd::kLanes, simd::SomeLanes;

// The largest tile of dot products, unrolled as that of outer products is.
constexpr int kDotColumns = 4, kDotRows = simd::kSums / kDotColumns;

/// kRows x kColumns dot products over n: c[i][j] = sum_f a(i, f) * b(j, f).
template <int kRows, int kColumns, class A, class B>
void dot_tile(RowMajor<A> a, RowMajor<B> b, int64_t n, float (&c)[kDotRows][kDotColumns]) {
  Floats sums[kRows][kColumns]{};
  const auto add = [&](int64_t f, auto lanes) __attribute__((always_inline)) {
    Floats left[kRows];
#pragma GCC unroll 4
    for (int i = 0; i < kRows; ++i) left[i] = simd::load(a.at(i, f), lanes);
#pragma GCC unroll 4
    for (int j = 0; j < kColumns; ++j) {
      const Floats right = simd::load(b.at(j, f), lanes);
#pragma GCC unroll 4
      for (int i = 0; i < kRows; ++i) sums[i][j] += left[i] * right;
    }
  };
  int64_t f = 0;
  for (; f + kLanes <= n; f += kLanes) add(f, AllLanes{});
  if (f < n) add(f, SomeLanes{static_cast<int>(n - f)});
#pragma GCC unroll 4
  for (int i = 0; i < kRows; ++i)
#pragma GCC unroll 4
    for (int j = 0; j < kColumns; ++j) c[i][j] = simd::sum(sums[i][j]);
}

/// The gradients of a layer's outputs as floats: in place if they are, widened into the beginning
/// of a workspace otherwise.
template <class Y>
struct WidenedOutputs {
  int64_t count;
  size_t bytes() const {
    if constexpr (std::is_same_v<Y, float>)
      return 0;
    else
      return workspace_part(static_cast<size_t>(count) * sizeof(float));
  }
  const float* widen(const void* dy, void* workspace) const {
    if constexpr (std::is_same_v<Y, float>) {
      return static_cast<const float*>(dy);
    } else {
      const Y* const from = static_cast<const Y*>(dy);
      auto* const floats = static_cast<float*>(workspace);
      std::transform(from, from + count, floats, [](Y v) { return static_cast<float>(v); });
      return floats;
    }
  }
  void* behind(void* workspace) const { return static_cast<char*>(workspace) + bytes(); }
};

template <class X, class Y>
class DenseKernel final : public Kernel {
 public:
  explicit DenseKernel(const KernelRequest& r)
      : x_(r.in[0]), outputs_(r.in[1].shape[0]), bias_(r.in.size() > 2) {}
  size_t workspace_bytes() const override { return x_.bytes(); }

  void run(const KernelArgs& args) override {
    const int64_t features = x_.size();
    const RowMajor<const X> x{x_.gather(static_cast<const X*>(args.in[0]), args.workspace),
                              features};
    const RowMajor<const float> w{static_cast<const float*>(args.in[1]), features};
    const auto* const bias = bias_ ? static_cast<const float*>(args.in[2]) : nullptr;
    auto* const y = static_cast<Y*>(args.out[0]);
    const auto block = [&]<int kRows, int kColumns>(std::integral_constant<int, kRows>,
                                                    std::integral_constant<int, kColumns>,
                                                    int64_t n, int64_t k) {
      float c[kDotRows][kDotColumns];
      dot_tile<kRows, kColumns>(RowMajor<const X>{x.at(n, 0), features},
                                RowMajor<const float>{w.at(k, 0), features}, features, c);
      for (int i = 0; i < kRows; ++i)
        for (int j = 0; j < kColumns; ++j)
          y[(n + i) * outputs_ + k + j] = static_cast<Y>(c[i][j] + (bias ? bias[k + j] : 0.f));
    };
    const auto over_samples = [&](auto columns, int64_t k) {
      int64_t n = 0;
      for (; n + kDotRows <= x_.samples(); n += kDotRows)
        block(std::integral_constant<int, kDotRows>{}, columns, n, k);
      for (; n < x_.samples(); ++n) block(std::integral_constant<int, 1>{}, columns, n, k);
    };
    // Weights in the outer loop: they are read from memory once a tile.
    int64_t k = 0;
    for (; k + kDotColumns <= outputs_; k += kDotColumns)
      over_samples(std::integral_constant<int, kDotColumns>{}, k);
    for (; k < outputs_; ++k) over_samples(std::integral_constant<int, 1>{}, k);
  }

 private:
  PlainSamples<X> x_;
  int64_t outputs_;
  bool bias_;
};

template <class X, class Y>
class DenseBackwardDataKernel final : public Kernel {
 public:
  explicit DenseBackwardDataKernel(const KernelRequest& r)
      : x_(r.out[0]), outputs_(r.in[1].shape[0]), dy_{x_.samples() * outputs_} {}
  size_t workspace_bytes() const override { return dy_.bytes() + x_.bytes(); }

  void run(const KernelArgs& args) override {
    const float* const dy = dy_.widen(args.in[0], args.workspace);
    const RowMajor<const float> w{static_cast<const float*>(args.in[1]), x_.size()};
    auto* const plain = static_cast<X*>(x_.in_place() ? args.out[0] : dy_.behind(args.workspace));
    product::outer(x_.samples(), x_.size(), outputs_, Left{dy, outputs_, 1}, w,
                   [&](int64_t n, int64_t f, Floats sum, auto lanes) {
                     simd::store(plain + n * x_.size() + f, sum, lanes);
                   });
    if (!x_.in_place()) x_.scatter(plain, static_cast<X*>(args.out[0]));
  }

 private:
  PlainSamples<X> x_;
  int64_t outputs_;
  WidenedOutputs<Y> dy_;
};

template <class X, class Y>
class DenseBackwardWeightsKernel final : public Kernel {
 public:
  explicit DenseBackwardWeightsKernel(const KernelRequest& r)
      : x_(r.in[0]), outputs_(r.out[0].shape[0]), dy_{x_.samples() * outputs_} {}
  size_t workspace_bytes() const override { return dy_.bytes() + x_.bytes(); }
  size_t state_bytes() const override {
    return static_cast<size_t>(outputs_ * x_.size()) * sizeof(float);
  }
  int state_output() const override { return 0; }

  void run(const KernelArgs& args) override {
    const float* const dy = dy_.widen(args.in[1], args.workspace);
    const RowMajor<const X> x{
        x_.gather(static_cast<const X*>(args.in[0]), dy_.behind(args.workspace)), x_.size()};
    auto* const dw = static_cast<float*>(args.state);
    product::outer(outputs_, x_.size(), x_.samples(), Left{dy, 1, outputs_}, x,
                   [&](int64_t k, int64_t f, Floats sum, auto lanes) {
                     float* const to = dw + k * x_.size() + f;
                     simd::store(to, args.first ? sum : simd::load(to, lanes) + sum, lanes);
                   });
  }
  void finish(const FinishArgs& args) override {
    simd::add_states(args, static_cast<float*>(args.out[0]), outputs_ * x_.size());
  }

 private:
  PlainSamples<X> x_;
  int64_t outputs_;
  WidenedOutputs<Y> dy_;
};

/// `weights`: w or dw as the candidate has it.
template <template <class, class> class K>
KernelCandidate make_dense(const KernelRequest& r, const TensorDesc& x, const TensorDesc& y,
                           const TensorDesc& (*weights)(const KernelCandidate&)) {
  KernelCandidate c = candidate_for(r, "cpu:dense");
  const KernelRequest exact{r.op, c.in, c.out, {}, {}};
  c.refusal = refusal_of_layouts(exact);
  if (const TensorDesc& w = weights(c); !w.layout.is_plain() || w.dtype != DType::f32)
    c.refusal = fmt::format("weights are {}, plain f32 is needed", w.to_string());
  const bool known = with_float_type(x.dtype, [&](auto tx) {
    with_float_type(y.dtype, [&](auto ty) {
      c.make = [exact] { return std::make_unique<K<decltype(tx), decltype(ty)>>(exact); };
    });
  });
  if (!known || !c.make)
    c.refusal = fmt::format("no dense layer from {} to {}", name_of(x.dtype), name_of(y.dtype));
  return c;
}

}  // namespace

bool append_dense_candidates(const KernelRequest& r, std::vector<KernelCandidate>& candidates) {
  const auto w = [](const KernelCandidate& c) -> const TensorDesc& { return c.in[1]; };
  const auto dw = [](const KernelCandidate& c) -> const TensorDesc& { return c.out[0]; };
  if (dynamic_cast<const Dense*>(r.op))
    candidates.push_back(make_dense<DenseKernel>(r, r.in[0], r.out[0], w));
  else if (dynamic_cast<const DenseBackwardData*>(r.op))
    candidates.push_back(make_dense<DenseBackwardDataKernel>(r, r.out[0], r.in[0], w));
  else if (dynamic_cast<const DenseBackwardWeights*>(r.op))
    candidates.push_back(make_dense<DenseBackwardWeightsKernel>(r, r.in[0], r.in[1], dw));
  else
    return false;
  append_onednn_dense_candidates(r, candidates);
  return true;
}

}  // namespace tutti
