#include "tutti/backend/cpu/conv/matrix_conv.h"

#include <algorithm>
#include <memory>
#include <optional>
#include <string>

#include "tutti/backend/cpu/kernel/sample.h"
#include "tutti/backend/cpu/matrix/matrix_product.h"
#include "tutti/backend/cpu/matrix/matrix_rows.h"
#include "tutti/backend/cpu/matrix/matrix_tile.h"
#include "tutti/backend/cpu/matrix/matrix_weights.h"
#include "tutti/base/error.h"

namespace tutti {
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

struct MatrixRequest {
  const ConvAttributes* a = nullptr;
  TensorDesc x, y;
  size_t w = 1;  ///< index among the inputs, or 0 for the outputs
  bool gradient = false, data = false, bias = false;
  bool whole = false;  ///< the team shares the gradient
  std::optional<ActivationAttributes> activation{};
};

std::optional<MatrixRequest> matrix_request(const KernelRequest& r) {
  if (const auto* op = dynamic_cast<const Conv*>(r.op))
    return MatrixRequest{.a = &op->conv(),
                         .x = r.in[0],
                         .y = r.out[0],
                         .bias = op->bias(),
                         .activation = op->activation()};
  if (const auto* op = dynamic_cast<const ConvBackwardData*>(r.op))
    return MatrixRequest{.a = &op->conv(), .x = r.out[0], .y = r.in[0], .data = true};
  if (const auto* op = dynamic_cast<const ConvBackwardWeights*>(r.op))
    return MatrixRequest{.a = &op->conv(),
                         .x = r.in[0],
                         .y = r.in[1],
                         .w = 0,
                         .gradient = true,
                         .whole = op->whole()};
  return std::nullopt;
}

std::string refusal_of_matrix(const MatrixRequest& r) {
  constexpr int64_t kFewest = 8;  // half of a panel
  if (r.a->groups != 1) return "only ungrouped";
  for (const TensorDesc* d : {&r.x, &r.y})
    if (d->layout != Layout::channels_last(d->shape.rank())) return "only channels last";
  const bool pairs = r.x.dtype == DType::bf16 && r.y.dtype == DType::bf16;
  if (pairs && !matrix::kFastPairs && !r.whole)
    return "bf16 where TUTTI_MARCH has no products of bf16 pairs";
  if (!pairs && (r.x.dtype != DType::f32 || r.y.dtype != DType::f32)) return "not these types";
  if ((r.data ? r.x : r.y).shape[1] < kFewest)
    return fmt::format("fewer than {} channels of results", kFewest);
  if (r.activation && r.activation->kind != ActivationKind::relu &&
      r.activation->kind != ActivationKind::leaky_relu)
    return "no activation but ReLU and leaky ReLU";
  return {};
}

std::function<std::unique_ptr<Kernel>()> maker_of_matrix(const MatrixRequest& r, const Shape& w) {
  const Sliding sliding = Sliding::of(*r.a, r.x.shape, r.y.shape, w);
  if (r.gradient)
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
                              .from_pixels = matrix::volume(r.data ? sliding.y : sliding.x),
                              .to_pixels = matrix::volume(r.data ? sliding.x : sliding.y),
                              .from_channels = (r.data ? r.y : r.x).shape[1],
                              .to_channels = (r.data ? r.x : r.y).shape[1],
                              .taps = matrix::volume(sliding.kernel),
                              .bias = r.bias,
                              .relu = r.activation.has_value()};
  if (r.activation && r.activation->kind == ActivationKind::leaky_relu)
    p.slope = r.activation->slope;
  if (r.data)
    p.lattices = matrix::data_lattices(sliding);
  else
    p.lattices.push_back(matrix::forward_lattice(sliding));
  return [p]() -> std::unique_ptr<Kernel> { return std::make_unique<MatrixConvKernel>(p); };
}

/// True for one tap where each result reads the pixel at its own place.
bool is_product(const MatrixRequest& r, const Shape& w) {
  return !r.gradient &&
         matrix::forward_lattice(Sliding::of(*r.a, r.x.shape, r.y.shape, w)).in_place();
}

std::function<std::unique_ptr<Kernel>()> maker_of_product(const MatrixRequest& r) {
  const Shape &from = (r.data ? r.y : r.x).shape, &to = (r.data ? r.x : r.y).shape;
  matrix::ProductProblem p{.positions = from[0] * from.elements_from(2),
                           .from = from[1],
                           .to = to[1],
                           .data = r.data,
                           .bias = r.bias,
                           .relu = r.activation.has_value()};
  if (r.activation && r.activation->kind == ActivationKind::leaky_relu)
    p.slope = r.activation->slope;
  return [p, type = r.x.dtype] { return matrix::make_product_kernel(p, type, type); };
}

/// Returns the candidate of this name, for weights in this layout.
KernelCandidate candidate_of(const KernelRequest& request, const MatrixRequest& r, const char* name,
                             const Layout& layout) {
  KernelCandidate c = candidate_for(request, name);
  TensorDesc& w = r.gradient ? c.out[r.w] : c.in[r.w];
  const std::vector<bool>& free = r.gradient ? request.out_free : request.in_free;
  const TensorDesc wanted{DType::f32, w.shape, layout};
  c.refusal = refusal_of_matrix(r);
  if (c.refusal.empty() && !free[r.w] && w != wanted)
    c.refusal = "weights must be " + wanted.to_string();
  if (c.refusal.empty()) w = wanted;
  return c;
}

}  // namespace

Layout matrix::panels_layout(int rank, bool data) {
  Layout layout;
  const int8_t columns = data ? 1 : 0, rows = data ? 0 : 1;
  for (int i = 1; i + 1 < rank; ++i)
    layout.order[static_cast<size_t>(i)] = static_cast<int8_t>(i + 1);
  layout.order[0] = columns;
  layout.order[static_cast<size_t>(rank - 1)] = rows;
  layout.blocks[0] = {columns, kColumns};
  layout.num_blocks = 1;
  return layout;
}

void append_matrix_conv_candidate(const KernelRequest& request,
                                  std::vector<KernelCandidate>& candidates) {
  const auto r = matrix_request(request);
  if (!r) return;
  const Shape& w = (r->gradient ? request.out : request.in)[r->w].shape;
  KernelCandidate c = candidate_of(request, *r, "cpu:matrix", panels_layout(w.rank(), r->data));
  if (c.refusal.empty() && r->x.dtype == DType::bf16 && !r->gradient)
    c.refusal = "bf16 for gradients of weights only";
  if (c.refusal.empty()) c.make = maker_of_matrix(*r, w);
  candidates.push_back(std::move(c));
  if (!is_product(*r, w)) return;
  // The weights have their gradients' layout, whichever way they are read.
  candidates.push_back(candidate_of(request, *r, "cpu:product", panels_layout(w.rank(), false)));
  if (candidates.back().refusal.empty()) candidates.back().make = maker_of_product(*r);
}

}  // namespace tutti
