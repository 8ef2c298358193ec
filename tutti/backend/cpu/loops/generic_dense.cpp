// Dense layers and their gradients: register tiles of sixteen floats. bf16 operands are widened
// when they are loaded, weights are used in f32, sums are f32.

#include <algorithm>
#include <type_traits>

#include "tutti/backend/cpu/kernel/kernel_table.h"
#include "tutti/backend/cpu/kernel/plain_samples.h"
#include "tutti/backend/cpu/simd/simd.h"
#include "tutti/ops/dense.h"

namespace tutti::backend {
namespace {

using simd::AllLanes, simd::Floats, simd::kLanes, simd::SomeLanes;

/// A matrix of rows; element (i, j) at data[i * row + j].
template <class T>
struct RowLoop {
  T* data;
  int64_t row;
  T* at(int64_t i, int64_t j) const { return data + i * row + j; }
};

constexpr int64_t kAhead = 16;

// The largest tiles, for outer products and for dot products. Their loops are unrolled: a sum with
// a variable index would be in memory.
constexpr int kTileVectors = simd::kSums > 4 ? 2 : 1, kTileRows = simd::kSums / kTileVectors;
constexpr int kDotColumns = 4, kDotRows = simd::kSums / kDotColumns;

/// Computes kRows x kColumns dot products over n: c[i][j] = sum_f a(i, f) * b(j, f).
template <int kRows, int kColumns, class A, class B>
void dot_tile(RowLoop<A> a, RowLoop<B> b, int64_t n, float (&c)[kDotRows][kDotColumns]) {
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

/// The left factor of a product; element (i, k) at data[i * row + k * column].
struct Left {
  const float* data;
  int64_t row, column;
};

/// Computes kRows rows of c over kVectors vectors of columns: c(i, j) = sum_k a(i, k) * b(k, j).
template <int kRows, int kVectors, class Lanes, class B, class Store>
void outer_tile(Left a, RowLoop<B> b, int64_t n, Lanes lanes, Store store) {
  Floats sums[kRows][kVectors]{};
  for (int64_t k = 0; k < n; ++k) {
#pragma GCC unroll 2
    for (int v = 0; v < kVectors; ++v)
      __builtin_prefetch(
          b.at(k + kAhead, v * kLanes));  // rows lie pages apart, where hardware does not prefetch
    Floats right[kVectors];
#pragma GCC unroll 2
    for (int v = 0; v < kVectors; ++v) right[v] = simd::load(b.at(k, v * kLanes), lanes);
#pragma GCC unroll 8
    for (int i = 0; i < kRows; ++i) {
      const Floats left = simd::splat(a.data[i * a.row + k * a.column]);
#pragma GCC unroll 2
      for (int v = 0; v < kVectors; ++v) sums[i][v] += left * right[v];
    }
  }
#pragma GCC unroll 8
  for (int i = 0; i < kRows; ++i)
#pragma GCC unroll 2
    for (int v = 0; v < kVectors; ++v) store(i, v * kLanes, sums[i][v], lanes);
}

/// Computes all of c [rows, columns]: store(i, j, sixteen sums, lanes) for every tile of c = a * b.
/// A small b stays in cache, and c is passed along its rows, so that memory is accessed in a few
/// long streams. Otherwise columns are the outer loop: their stripe of b stays in cache while the
/// rows pass.
template <class B, class Store>
void outer_product(int64_t rows, int64_t columns, int64_t n, Left a, RowLoop<B> b, Store store) {
  const auto tile = [&]<int kRows, int kVectors>(std::integral_constant<int, kRows>, int64_t i,
                                                 std::integral_constant<int, kVectors>, int64_t j,
                                                 auto lanes) {
    outer_tile<kRows, kVectors>(
        Left{a.data + i * a.row, a.row, a.column}, RowLoop<B>{b.data + j, b.row}, n, lanes,
        [&](int r, int64_t c, Floats sum, auto which) { store(i + r, j + c, sum, which); });
  };
  const auto over_rows = [&](auto&& part) {
    int64_t i = 0;
    for (; i + kTileRows <= rows; i += kTileRows) part(std::integral_constant<int, kTileRows>{}, i);
    constexpr int kHalf = kTileRows / 2;
    if (i + kHalf <= rows) part(std::integral_constant<int, kHalf>{}, i), i += kHalf;
    for (; i < rows; ++i) part(std::integral_constant<int, 1>{}, i);
  };
  const auto over_columns = [&](auto&& part) {
    int64_t j = 0;
    for (; j + kTileVectors * kLanes <= columns; j += kTileVectors * kLanes)
      part(std::integral_constant<int, kTileVectors>{}, j, AllLanes{});
    constexpr std::integral_constant<int, 1> one;
    for (; j + kLanes <= columns; j += kLanes) part(one, j, AllLanes{});
    if (j < columns) part(one, j, SomeLanes{static_cast<int>(columns - j)});
  };
  constexpr size_t kCache = 256 << 10;  // well inside the second level
  if (static_cast<size_t>(n * columns) * sizeof(B) <= kCache)
    over_rows([&](auto kRows, int64_t i) {
      over_columns(
          [&](auto kVectors, int64_t j, auto lanes) { tile(kRows, i, kVectors, j, lanes); });
    });
  else
    over_columns([&](auto kVectors, int64_t j, auto lanes) {
      over_rows([&](auto kRows, int64_t i) { tile(kRows, i, kVectors, j, lanes); });
    });
}

/// The gradients of a layer's outputs as floats: in place if they are f32, otherwise widened into
/// the beginning of a workspace.
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
    const RowLoop<const X> x{x_.gather(static_cast<const X*>(args.in[0]), args.workspace),
                             features};
    const RowLoop<const float> w{static_cast<const float*>(args.in[1]), features};
    const auto* const bias = bias_ ? static_cast<const float*>(args.in[2]) : nullptr;
    auto* const y = static_cast<Y*>(args.out[0]);
    const auto block = [&]<int kRows, int kColumns>(std::integral_constant<int, kRows>,
                                                    std::integral_constant<int, kColumns>,
                                                    int64_t n, int64_t k) {
      float c[kDotRows][kDotColumns];
      dot_tile<kRows, kColumns>(RowLoop<const X>{x.at(n, 0), features},
                                RowLoop<const float>{w.at(k, 0), features}, features, c);
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
    // Weights are in the outer loop: they are read from memory once a tile.
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
    const RowLoop<const float> w{static_cast<const float*>(args.in[1]), x_.size()};
    auto* const plain = static_cast<X*>(x_.in_place() ? args.out[0] : dy_.behind(args.workspace));
    outer_product(x_.samples(), x_.size(), outputs_, Left{dy, outputs_, 1}, w,
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
    const RowLoop<const X> x{
        x_.gather(static_cast<const X*>(args.in[0]), dy_.behind(args.workspace)), x_.size()};
    auto* const dw = static_cast<float*>(args.state);
    outer_product(outputs_, x_.size(), x_.samples(), Left{dy, 1, outputs_}, x,
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

/// `weights`: the candidate's desc of w or dw.
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

void register_dense_kernels(KernelTable& table) {
  const auto w = [](const KernelCandidate& c) -> const TensorDesc& { return c.in[1]; };
  const auto dw = [](const KernelCandidate& c) -> const TensorDesc& { return c.out[0]; };
  constexpr int kFirst = 0;  // before oneDNN's
  table.add<ops::Dense>(
      [w](const KernelRequest& r) { return make_dense<DenseKernel>(r, r.in[0], r.out[0], w); },
      kFirst);
  table.add<ops::DenseBackwardData>(
      [w](const KernelRequest& r) {
        return make_dense<DenseBackwardDataKernel>(r, r.out[0], r.in[0], w);
      },
      kFirst);
  table.add<ops::DenseBackwardWeights>(
      [dw](const KernelRequest& r) {
        return make_dense<DenseBackwardWeightsKernel>(r, r.in[0], r.in[1], dw);
      },
      kFirst);
}

}  // namespace tutti::backend
