// Convolutions to fewer than 8 channels, as where a network ends in a map or in logits: a result is
// a few dot products along the channels of the pixels it reads. Vectors of results, which other
// kernels use, would be mostly empty.

#include <algorithm>
#include <memory>
#include <string>

#include "tutti/backend/cpu/conv/conv.h"
#include "tutti/backend/cpu/kernel/sample.h"
#include "tutti/backend/cpu/matrix/matrix_rows.h"
#include "tutti/backend/cpu/simd/simd.h"

namespace tutti::backend {
namespace {

using matrix::Lattice, simd::kLanes;

constexpr int64_t kFewResults = 7;       ///< channels
constexpr int64_t kResultsOfBlock = 64;  ///< results at a time, whose pixels are looked up together
constexpr int kResultsHeld = 8;          ///< results whose sums are in registers

struct NarrowProblem {
  std::vector<Lattice> lattices;
  int64_t samples = 0, from_pixels = 0, to_pixels = 0;
  int64_t from_channels = 0, to_channels = 0;
  bool bias = false;
};

/// Computes y from x, or dx from dy. Weights are f32 [kernel..., channels of results, channels
/// read].
template <class T>
class NarrowConvKernel final : public Kernel {
 public:
  explicit NarrowConvKernel(NarrowProblem problem)
      : p_(std::move(problem)), zeros_(static_cast<size_t>(p_.from_channels)),
        pixels_(kResultsOfBlock) {
    size_t taps = 0;
    for (const Lattice& lattice : p_.lattices) taps = std::max(taps, lattice.taps.size());
    read_.resize(taps * kResultsOfBlock);
  }

  void run(const KernelArgs& args) override {
    const auto* const x = static_cast<const T*>(args.in[0]);
    const auto* const w = static_cast<const float*>(args.in[1]);
    const auto* const bias = p_.bias ? static_cast<const float*>(args.in[2]) : nullptr;
    auto* const y = static_cast<T*>(args.out[0]);
    for (int64_t n = 0; n < p_.samples; ++n)
      for (const Lattice& lattice : p_.lattices)
        for (int64_t first = 0; first < lattice.results(); first += kResultsOfBlock) {
          const int64_t count = std::min(kResultsOfBlock, lattice.results() - first);
          matrix::place(lattice, first, count, pixels_.data());
          for (size_t t = 0; t < lattice.taps.size(); ++t)
            if (int64_t* const at = read_.data() + t * kResultsOfBlock;
                !matrix::read_pixels(lattice, lattice.taps[t], first, count, at))
              std::fill_n(at, count, -1);
          for (int64_t i = 0; i < count; i += kResultsHeld)
            for (int64_t k = 0; k < p_.to_channels; ++k)
              make(lattice, {x + n * p_.from_pixels * p_.from_channels, w, bias ? bias[k] : 0.f, k},
                   i, std::min<int64_t>(kResultsHeld, count - i),
                   y + n * p_.to_pixels * p_.to_channels + k);
        }
  }

 private:
  struct Channel {
    const T* x;
    const float* w;
    float bias;
    int64_t index;
  };

  /// Makes one channel of results [i, i + count) of the block.
  void make(const Lattice& lattice, const Channel& channel, int64_t i, int64_t count, T* y) const {
    simd::Floats sums[kResultsHeld]{};
    for (size_t t = 0; t < lattice.taps.size(); ++t) {
      const T* from[kResultsHeld];
      bool any = false;
      for (int r = 0; r < kResultsHeld; ++r) {
        const int64_t pixel =
            r < count ? read_[t * kResultsOfBlock + static_cast<size_t>(i + r)] : -1;
        from[r] = pixel < 0 ? zeros_.data() : channel.x + pixel * p_.from_channels;
        any |= pixel >= 0;
      }
      if (!any) continue;
      const float* const w =
          channel.w + (lattice.taps[t].index * p_.to_channels + channel.index) * p_.from_channels;
      const auto add = [&](int64_t c, auto lanes) {
        const simd::Floats v = simd::load(w + c, lanes);
#pragma GCC unroll 8
        for (int r = 0; r < kResultsHeld; ++r) sums[r] += v * simd::load(from[r] + c, lanes);
      };
      int64_t c = 0;
      for (; c + kLanes <= p_.from_channels; c += kLanes) add(c, simd::AllLanes{});
      if (c < p_.from_channels) add(c, simd::SomeLanes{static_cast<int>(p_.from_channels - c)});
    }
    for (int64_t r = 0; r < count; ++r)
      y[pixels_[static_cast<size_t>(i + r)] * p_.to_channels] =
          T(simd::sum(sums[r]) + channel.bias);
  }

  NarrowProblem p_;
  std::vector<T> zeros_;         ///< a pixel of the padding
  std::vector<int64_t> pixels_;  ///< for a block: where its results lie
  std::vector<int64_t> read_;    ///< [tap][result]: the pixel that is read, or -1
};

std::string refusal_of_narrow(const ConvRequest& r) {
  if (r.a.groups != 1) return "only ungrouped";
  for (const TensorDesc* d : {&r.x, &r.y})
    if (d->layout != Layout::channels_last(d->shape.rank())) return "only channels last";
  if (r.x.dtype != r.y.dtype || (r.x.dtype != DType::f32 && r.x.dtype != DType::bf16))
    return "only f32 or bf16, both alike";
  if (r.to().shape[1] > kFewResults)
    return fmt::format("more than {} channels of results", kFewResults);
  if (r.activation) return "no activation";
  return {};
}

/// Returns the layout [kernel..., channels of results, channels read].
Layout narrow_layout(int rank, bool data) {
  Layout layout;
  for (int i = 0; i + 2 < rank; ++i)
    layout.order[static_cast<size_t>(i)] = static_cast<int8_t>(i + 2);
  layout.order[static_cast<size_t>(rank - 2)] = data ? 1 : 0;
  layout.order[static_cast<size_t>(rank - 1)] = data ? 0 : 1;
  return layout;
}

NarrowProblem problem_of(const ConvRequest& r) {
  const matrix::Sliding sliding = matrix::Sliding::of(r.a, r.x.shape, r.y.shape, r.w.shape);
  const TensorDesc &from = r.from(), &to = r.to();
  NarrowProblem p{.lattices = {},
                  .samples = from.shape[0],
                  .from_pixels = from.shape.elements_from(2),
                  .to_pixels = to.shape.elements_from(2),
                  .from_channels = from.shape[1],
                  .to_channels = to.shape[1],
                  .bias = r.bias};
  if (r.makes_data())
    p.lattices = matrix::data_lattices(sliding);
  else
    p.lattices.push_back(matrix::forward_lattice(sliding));
  return p;
}

}  // namespace

void register_narrow_conv(KernelTable& table) {
  const auto narrow = [](const KernelRequest& request, const auto& op) {
    const ConvRequest r(request, op);
    KernelCandidate c = candidate_for(request, "cpu:narrow");
    c.refusal = refusal_of_narrow(r);
    r.want_weights(c, narrow_layout(r.w.shape.rank(), r.makes_data()));
    if (c.refusal.empty())
      choose_kernel<NarrowConvKernel>(c, r.x.dtype, "convolution", problem_of(r));
    return c;
  };
  table.add<ops::Conv, ops::ConvBackwardData>(narrow, ConvPlace::narrow);
}

}  // namespace tutti::backend
