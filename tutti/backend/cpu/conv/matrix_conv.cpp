// Ungrouped convolutions of channels-last tensors as products of matrices: a pixel's channels are a
// row, weights lie in panels of 16 outputs, and each tap is one more part of the sum. Any kernel,
// stride, dilation and padding, in 2 or 3 dimensions. f32; gradients of weights also in bf16 where
// TUTTI_MARCH has products of bf16 pairs (other bf16 ops use conv_widened.cpp).

#include <algorithm>
#include <memory>
#include <string>

#include "tutti/backend/cpu/conv/conv.h"
#include "tutti/backend/cpu/kernel/sample.h"
#include "tutti/backend/cpu/matrix/matrix_product.h"
#include "tutti/backend/cpu/matrix/matrix_rows.h"
#include "tutti/backend/cpu/matrix/matrix_tile.h"
#include "tutti/backend/cpu/matrix/matrix_weights.h"
#include "tutti/base/error.h"

namespace tutti::backend {
namespace {

using matrix::Channels, matrix::kColumns, matrix::kDepth, matrix::kGap, matrix::kMostRows,
    matrix::Lattice, matrix::panels_layout, matrix::Sliding, matrix::part_of, matrix::parts_of;
using Tile = matrix::Tile<float>;

constexpr int64_t kRowsOfBlock = kMostRows * (TUTTI_AVX512 ? 12 : 16);

/// Some terms of a sum: channels of one tap, or all channels of several consecutive taps.
struct Terms {
  size_t first_tap = 0, taps = 1;
  int64_t first = 0, count = 0;  ///< channels
};

std::vector<Terms> terms_of_sum(const Lattice& lattice, int64_t channels) {
  std::vector<Terms> all;
  const int64_t parts = parts_of(channels, kDepth);
  const auto most = static_cast<size_t>(std::max<int64_t>(1, kDepth / channels));
  for (size_t t = 0; t < lattice.taps.size();) {
    size_t taps = 1;
    while (taps < most && t + taps < lattice.taps.size() &&
           lattice.taps[t + taps].index == lattice.taps[t].index + static_cast<int64_t>(taps))
      ++taps;
    for (int64_t p = 0; p < parts; ++p) {
      const auto [begin, end] = part_of(channels, p, parts);
      all.push_back({t, taps, begin, end - begin});
    }
    t += taps;
  }
  return all;
}

/// Computes y from x, or dx from dy.
class MatrixConvKernel final : public Kernel {
 public:
  struct Problem {
    std::vector<Lattice> lattices;
    int64_t samples = 0, from_pixels = 0, to_pixels = 0;
    int64_t from_channels = 0, to_channels = 0, taps = 0;
    bool bias = false, relu = false;
    float slope = 0;  ///< slope of a leaky ReLU
  };
  explicit MatrixConvKernel(Problem problem)
      : p_(std::move(problem)), pixels_(kRowsOfBlock), rows_(kRowsOfBlock) {
    for (const Lattice& lattice : p_.lattices)
      sums_.push_back(terms_of_sum(lattice, p_.from_channels));
  }
  size_t workspace_bytes() const override { return kRowsOfBlock * kRowStride * sizeof(float); }

  void run(const KernelArgs& args) override {
    const auto* const x = static_cast<const float*>(args.in[0]);
    auto* const y = static_cast<float*>(args.out[0]);
    const auto* const bias = p_.bias ? static_cast<const float*>(args.in[2]) : nullptr;
    auto* const workspace = static_cast<float*>(args.workspace);
    for (int64_t n = 0; n < p_.samples; ++n)
      for (size_t l = 0; l < p_.lattices.size(); ++l) {
        const Lattice& lattice = p_.lattices[l];
        const int64_t blocks = parts_of(lattice.results(), kRowsOfBlock);
        for (int64_t i = 0; i < blocks; ++i) {
          const auto [begin, end] = part_of(lattice.results(), i, blocks);
          matrix::place(lattice, begin, end - begin, pixels_.data());
          for (int64_t r = 0; r < end - begin; ++r)
            rows_[static_cast<size_t>(r)] =
                y + (n * p_.to_pixels + pixels_[static_cast<size_t>(r)]) * p_.to_channels;
          add_block(l, x + n * p_.from_pixels * p_.from_channels,
                    static_cast<const float*>(args.in[1]), begin, end - begin, workspace);
          close(bias, end - begin);
        }
      }
  }

 private:
  static constexpr int64_t kRowStride = kDepth + kGap;

  void add_block(size_t l, const float* x, const float* w, int64_t first, int64_t rows,
                 float* gathered) {
    const Lattice& lattice = p_.lattices[l];
    bool add = false;
    for (const Terms& terms : sums_[l]) {
      Tile t{.a = gathered, .a_row = kRowStride, .a_step = 1};
      if (lattice.in_place() && p_.from_channels % kDepth != 0) {
        t.a = x + first * p_.from_channels + terms.first;
        t.a_row = p_.from_channels;
      } else if (!gather_terms(lattice, terms, x, first, rows, gathered)) {
        continue;
      }
      t.b = w + (lattice.taps[terms.first_tap].index * p_.from_channels + terms.first) * kColumns;
      t.b_panel = p_.taps * p_.from_channels * kColumns;
      t.depth = static_cast<int64_t>(terms.taps) * terms.count;
      t.c = rows_.data();
      t.c_panel = kColumns;
      t.add = std::exchange(add, true);
      matrix::multiply_block(t, rows, p_.to_channels);
    }
    if (!add)
      for (int64_t r = 0; r < rows; ++r)
        std::fill_n(rows_[static_cast<size_t>(r)], p_.to_channels, 0.f);
  }

  bool gather_terms(const Lattice& lattice, const Terms& terms, const float* x, int64_t first,
                    int64_t rows, float* gathered) const {
    const Channels channels{x, p_.from_channels, terms.first, terms.count};
    bool any = false;
    for (size_t i = 0; i < terms.taps; ++i) {
      float* const to = gathered + static_cast<int64_t>(i) * terms.count;
      const bool reads = matrix::gather(lattice, lattice.taps[terms.first_tap + i], channels, first,
                                        rows, to, kRowStride);
      any |= reads;
      if (!reads && terms.taps > 1)
        for (int64_t r = 0; r < rows; ++r) std::fill_n(to + r * kRowStride, terms.count, 0.f);
    }
    return any;
  }

  /// Adds bias and activation, while the block is in cache.
  void close(const float* bias, int64_t rows) {
    if (!bias && !p_.relu) return;
    const int64_t n = p_.to_channels;
    for (int64_t r = 0; r < rows; ++r) {
      float* const y = rows_[static_cast<size_t>(r)];
      const auto finish = [&](int64_t c, auto lanes) {
        simd::Floats v = simd::load(y + c, lanes);
        if (bias) v += simd::load(bias + c, lanes);
        if (p_.relu && p_.slope == 0) v = simd::relu(v);
        if (p_.relu && p_.slope != 0) v = simd::select(v < simd::Floats{}, v * p_.slope, v);
        simd::store(y + c, v, lanes);
      };
      int64_t c = 0;
      for (; c + kColumns <= n; c += kColumns) finish(c, simd::AllLanes{});
      if (c < n) finish(c, simd::SomeLanes{static_cast<int>(n - c)});
    }
  }

  Problem p_;
  std::vector<std::vector<Terms>> sums_;  ///< by lattice
  std::vector<int64_t> pixels_;
  std::vector<float*> rows_;  ///< for a block: where its results lie
};

std::string refusal_of_matrix(const ConvRequest& r) {
  constexpr int64_t kFewest = 8;  // half of a panel
  if (r.a.groups != 1) return "only ungrouped";
  for (const TensorDesc* d : {&r.x, &r.y})
    if (d->layout != Layout::channels_last(d->shape.rank())) return "only channels last";
  const bool pairs = r.x.dtype == DType::bf16 && r.y.dtype == DType::bf16;
  if (pairs && !matrix::kFastPairs && !r.whole)
    return "bf16 where TUTTI_MARCH has no products of bf16 pairs";
  if (!pairs && (r.x.dtype != DType::f32 || r.y.dtype != DType::f32)) return "not these types";
  if (r.to().shape[1] < kFewest) return fmt::format("fewer than {} channels of results", kFewest);
  if (r.activation && r.activation->kind != ops::ActivationKind::relu &&
      r.activation->kind != ops::ActivationKind::leaky_relu)
    return "no activation but ReLU and leaky ReLU";
  return {};
}

std::function<std::unique_ptr<Kernel>()> maker_of_matrix(const ConvRequest& r) {
  const Sliding sliding = Sliding::of(r.a, r.x.shape, r.y.shape, r.w.shape);
  if (r.makes_weights())
    return
        [type = r.x.dtype, p = matrix::WeightsProblem{.lattice = matrix::forward_lattice(sliding),
                                                      .samples = r.x.shape[0],
                                                      .x_pixels = matrix::volume(sliding.x),
                                                      .channels = r.x.shape[1],
                                                      .outputs = r.y.shape[1],
                                                      .whole = r.whole}] {
          return matrix::make_weights_kernel(p, type);
        };
  MatrixConvKernel::Problem p{.lattices = {},
                              .samples = r.x.shape[0],
                              .from_pixels = matrix::volume(r.makes_data() ? sliding.y : sliding.x),
                              .to_pixels = matrix::volume(r.makes_data() ? sliding.x : sliding.y),
                              .from_channels = r.from().shape[1],
                              .to_channels = r.to().shape[1],
                              .taps = matrix::volume(sliding.kernel),
                              .bias = r.bias,
                              .relu = r.activation.has_value()};
  if (r.activation && r.activation->kind == ops::ActivationKind::leaky_relu)
    p.slope = r.activation->slope;
  if (r.makes_data())
    p.lattices = matrix::data_lattices(sliding);
  else
    p.lattices.push_back(matrix::forward_lattice(sliding));
  return [p]() -> std::unique_ptr<Kernel> { return std::make_unique<MatrixConvKernel>(p); };
}

/// True for one tap where each result reads the pixel at its own place.
bool is_product(const ConvRequest& r) {
  return !r.makes_weights() &&
         matrix::forward_lattice(Sliding::of(r.a, r.x.shape, r.y.shape, r.w.shape)).in_place();
}

std::function<std::unique_ptr<Kernel>()> maker_of_product(const ConvRequest& r) {
  const Shape &from = r.from().shape, &to = r.to().shape;
  matrix::ProductProblem p{.positions = from[0] * from.elements_from(2),
                           .from = from[1],
                           .to = to[1],
                           .data = r.makes_data(),
                           .bias = r.bias,
                           .relu = r.activation.has_value()};
  if (r.activation && r.activation->kind == ops::ActivationKind::leaky_relu)
    p.slope = r.activation->slope;
  return [p, type = r.x.dtype] { return matrix::make_product_kernel(p, type, type); };
}

/// Returns the candidate of this name, for weights in this layout.
KernelCandidate matrix_candidate(const ConvRequest& r, const char* name, const Layout& layout) {
  KernelCandidate c = candidate_for(r.request, name);
  c.refusal = refusal_of_matrix(r);
  r.want_weights(c, layout);
  return c;
}

/// Returns "cpu:matrix" or its refusal. Weights are [K/16, kernel..., C, 16], for the data gradient
/// [C/16, kernel..., K, 16]. For convolutions of one tap also returns "cpu:product"
/// (matrix_product.h), which reads the former layout in both cases, and supports bf16.
KernelCandidates matrix_conv(const ConvRequest& r) {
  const int rank = r.w.shape.rank();
  KernelCandidates found{matrix_candidate(r, "cpu:matrix", panels_layout(rank, r.makes_data()))};
  KernelCandidate& c = found[0];
  if (c.refusal.empty() && r.x.dtype == DType::bf16 && !r.makes_weights())
    c.refusal = "bf16 for gradients of weights only";
  if (c.refusal.empty()) c.make = maker_of_matrix(r);
  if (!is_product(r)) return found;
  // The weights have their gradients' layout, whichever way they are read.
  found.push_back(matrix_candidate(r, "cpu:product", panels_layout(rank, false)));
  if (found.back().refusal.empty()) found.back().make = maker_of_product(r);
  return found;
}

}  // namespace

void register_matrix_conv(KernelTable& table) {
  add_conv(table, matrix_conv, ConvPlace::matrix);
  add_shared_conv(table, matrix_conv, ConvPlace::matrix);
}

}  // namespace tutti::backend
