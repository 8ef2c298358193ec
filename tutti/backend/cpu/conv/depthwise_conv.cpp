#include "tutti/backend/cpu/conv/depthwise_conv.h"

#include <algorithm>
#include <array>

#include "tutti/backend/cpu/kernel/sample.h"
#include "tutti/backend/cpu/simd/channel_walk.h"
#include "tutti/backend/cpu/simd/simd.h"

namespace tutti::backend {
namespace {

using simd::AllLanes, simd::Floats, simd::kLanes, simd::SomeLanes;

/// Three spatial dimensions; the first is 1 in a 2-D convolution.
using Triple = std::array<int64_t, 3>;

struct Depthwise {
  Triple x{1, 1, 1}, y{1, 1, 1}, kernel{1, 1, 1};
  Triple stride{1, 1, 1}, dilation{1, 1, 1}, pad{0, 0, 0};
  int64_t samples = 0, channels = 0, block = 0;
  static int64_t volume(const Triple& t) { return t[0] * t[1] * t[2]; }
  int64_t taps() const { return volume(kernel); }
};

/// For every index of one dimension: which taps reach which indices of the other side.
class TapRange {
 public:
  struct Tap {
    int64_t tap, at;
  };
  /// Outputs read inputs (forward), or inputs read outputs (the data gradient).
  TapRange(const Depthwise& g, size_t d, bool forward) : first_{0} {
    for (int64_t i = 0; i < (forward ? g.y[d] : g.x[d]); ++i) {
      for (int64_t k = 0; k < g.kernel[d]; ++k) {
        const int64_t x = i * g.stride[d] - g.pad[d] + k * g.dilation[d];
        const int64_t scaled = i + g.pad[d] - k * g.dilation[d];
        if (forward && x >= 0 && x < g.x[d]) taps_.push_back({k, x});
        if (!forward && scaled >= 0 && scaled % g.stride[d] == 0 && scaled / g.stride[d] < g.y[d])
          taps_.push_back({k, scaled / g.stride[d]});
      }
      first_.push_back(taps_.size());
    }
  }
  std::span<const Tap> of(int64_t i) const {
    const auto at = static_cast<size_t>(i);
    return {taps_.data() + first_[at], first_[at + 1] - first_[at]};
  }

 private:
  std::vector<size_t> first_;
  std::vector<Tap> taps_;
};

/// Calls f(first lane, vectors, lanes) for all of a block's channels, several vectors side by side.
template <class F>
[[gnu::always_inline]] inline void for_vectors(int64_t block, F f) {
  int64_t c = 0;
  for (; c + 4 * kLanes <= block; c += 4 * kLanes) f.template operator()<4>(c, AllLanes{});
  for (; c + kLanes <= block; c += kLanes) f.template operator()<1>(c, AllLanes{});
  if (c < block) f.template operator()<1>(c, SomeLanes{static_cast<int>(block - c)});
}

/// Computes the forward pass and the data gradient: a sum over taps for each position of the
/// result.
template <class T>
class DepthwiseKernel final : public Kernel {
 public:
  DepthwiseKernel(const Depthwise& g, bool forward, bool bias)
      : g_(g), from_(forward ? g.x : g.y), to_(forward ? g.y : g.x),
        bias_(bias), reach_{TapRange(g, 0, forward), TapRange(g, 1, forward),
                            TapRange(g, 2, forward)} {
    terms_.reserve(static_cast<size_t>(g.taps()));
  }

  void run(const KernelArgs& args) override {
    const auto* const w = static_cast<const float*>(args.in[1]);
    const auto* const bias = bias_ ? static_cast<const float*>(args.in[2]) : nullptr;
    const int64_t from = Depthwise::volume(from_) * g_.block,
                  to = Depthwise::volume(to_) * g_.block, blocks = g_.channels / g_.block;
    for (int64_t i = 0; i < g_.samples * blocks; ++i) {
      const int64_t channel = i % blocks * g_.block;
      block(static_cast<const T*>(args.in[0]) + i * from, w + channel,
            bias ? bias + channel : nullptr, static_cast<T*>(args.out[0]) + i * to);
    }
  }

 private:
  struct Term {
    int64_t from, weight;
  };

  void block(const T* from, const float* w, const float* bias, T* to) {
    for (int64_t d = 0; d < to_[0]; ++d)
      for (int64_t h = 0; h < to_[1]; ++h)
        for (int64_t column = 0; column < to_[2]; ++column, to += g_.block) {
          terms_.clear();
          for (const auto& [kd, id] : reach_[0].of(d))
            for (const auto& [kh, ih] : reach_[1].of(h))
              for (const auto& [kw, iw] : reach_[2].of(column))
                terms_.push_back({((id * from_[1] + ih) * from_[2] + iw) * g_.block,
                                  ((kd * g_.kernel[1] + kh) * g_.kernel[2] + kw) * g_.channels});
          for_vectors(g_.block, [&]<int kVectors>(int64_t c, auto lanes) {
            Floats sums[kVectors]{};
            for (int v = 0; bias && v < kVectors; ++v)
              sums[v] = simd::load(bias + c + v * kLanes, lanes);
            for (const Term& term : terms_)
#pragma GCC unroll 4
              for (int v = 0; v < kVectors; ++v)
                sums[v] += simd::load(w + term.weight + c + v * kLanes, lanes) *
                           simd::load(from + term.from + c + v * kLanes, lanes);
            for (int v = 0; v < kVectors; ++v) simd::store(to + c + v * kLanes, sums[v], lanes);
          });
        }
  }

  Depthwise g_;
  Triple from_, to_;
  bool bias_;
  std::array<TapRange, 3> reach_;
  std::vector<Term> terms_;  ///< terms of one position; never grows beyond its reserved size
};

/// Sums over a row first, then into the thread's state: two levels keep long sums exact.
template <class T>
class DepthwiseBackwardWeightsKernel final : public Kernel {
 public:
  explicit DepthwiseBackwardWeightsKernel(const Depthwise& g)
      : g_(g), reach_{TapRange(g, 0, true), TapRange(g, 1, true)} {
    for (int64_t k = 0; k < g.kernel[2]; ++k) {
      const int64_t shift = k * g.dilation[2] - g.pad[2], step = g.stride[2];
      const int64_t begin = shift < 0 ? (-shift + step - 1) / step : 0;
      const int64_t end = g.x[2] > shift ? (g.x[2] - shift + step - 1) / step : 0;
      columns_.push_back({begin, std::min(end, g.y[2]), shift});
    }
  }
  size_t state_bytes() const override {
    return static_cast<size_t>(g_.taps() * g_.channels) * sizeof(float);
  }
  int state_output() const override { return 0; }

  void run(const KernelArgs& args) override {
    auto* const dw = static_cast<float*>(args.state);
    if (args.first) std::fill_n(dw, g_.taps() * g_.channels, 0.f);
    const int64_t blocks = g_.channels / g_.block;
    for (int64_t i = 0; i < g_.samples * blocks; ++i)
      add_block(static_cast<const T*>(args.in[0]) + i * Depthwise::volume(g_.x) * g_.block,
                static_cast<const T*>(args.in[1]) + i * Depthwise::volume(g_.y) * g_.block,
                dw + i % blocks * g_.block);
  }
  void finish(const FinishArgs& args) override {
    simd::add_states(args, static_cast<float*>(args.out[0]), g_.taps() * g_.channels);
  }

 private:
  /// The positions of a row that a tap reaches, and x's index of position 0.
  struct Columns {
    int64_t begin, end, shift;
  };

  void add_block(const T* x, const T* dy, float* dw) {
    for (int64_t d = 0; d < g_.y[0]; ++d)
      for (int64_t h = 0; h < g_.y[1]; ++h, dy += g_.y[2] * g_.block)
        for (const auto& [kd, id] : reach_[0].of(d))
          for (const auto& [kh, ih] : reach_[1].of(h))
            for (int64_t kw = 0; kw < g_.kernel[2]; ++kw)
              add_row(x + (id * g_.x[1] + ih) * g_.x[2] * g_.block, dy,
                      columns_[static_cast<size_t>(kw)],
                      dw + ((kd * g_.kernel[1] + kh) * g_.kernel[2] + kw) * g_.channels);
  }

  void add_row(const T* x, const T* dy, const Columns& columns, float* dw) const {
    const int64_t step = g_.stride[2] * g_.block;
    for_vectors(g_.block, [&]<int kVectors>(int64_t c, auto lanes) {
      Floats sums[kVectors]{};
      const T* at = x + columns.shift * g_.block + columns.begin * step + c;
      for (int64_t i = columns.begin; i < columns.end; ++i, at += step)
#pragma GCC unroll 4
        for (int v = 0; v < kVectors; ++v)
          sums[v] += simd::load(at + v * kLanes, lanes) *
                     simd::load(dy + i * g_.block + c + v * kLanes, lanes);
      for (int v = 0; v < kVectors; ++v) {
        float* const to = dw + c + v * kLanes;
        simd::store(to, simd::load(to, lanes) + sums[v], lanes);
      }
    });
  }

  Depthwise g_;
  std::array<TapRange, 2> reach_;
  std::vector<Columns> columns_;
};

std::string refusal_of_depthwise(const ConvRequest& r) {
  if (r.activation) return "no activation";
  if (r.x.dtype != r.y.dtype || (r.x.dtype != DType::f32 && r.x.dtype != DType::bf16))
    return "only f32 or bf16, both alike";
  if (r.x.layout != r.y.layout || !is_dense(r.x) || !is_dense(r.y) ||
      r.x.layout.channel_block(r.x.shape) < std::min<int64_t>(r.x.shape[1], 2))
    return "neighbours must be channels: channels last or in blocks";
  return {};
}

Depthwise geometry_of(const ConvRequest& r) {
  Depthwise g;
  for (int d = 0; d < r.a.spatial; ++d) {
    const auto to = static_cast<size_t>(3 - r.a.spatial + d), from = static_cast<size_t>(d);
    g.x[to] = r.x.shape[d + 2];
    g.y[to] = r.y.shape[d + 2];
    g.kernel[to] = r.w.shape[d + 2];
    g.stride[to] = r.a.stride[from];
    g.dilation[to] = r.a.dilation[from];
    g.pad[to] = r.a.pad_low[from];
  }
  g.samples = r.x.shape[0];
  g.channels = r.x.shape[1];
  g.block = r.x.layout.channel_block(r.x.shape);
  return g;
}

/// Returns the layout [kernel..., C, 1].
Layout channels_inside(int rank) {
  Layout layout;
  for (int i = 0; i < rank; ++i)
    layout.order[static_cast<size_t>(i)] = static_cast<int8_t>((i + 2) % rank);
  return layout;
}

}  // namespace

KernelCandidates depthwise_conv(const ConvRequest& r) {
  const int64_t groups = r.a.groups;
  if (groups == 1 || groups != r.x.shape[1] || groups != r.y.shape[1]) return {};
  KernelCandidate c = candidate_for(r.request, "cpu:depthwise");
  c.refusal = refusal_of_depthwise(r);
  r.want_weights(c, channels_inside(r.w.shape.rank()));
  if (c.refusal.empty())
    with_float_type(r.x.dtype, [&](auto type) {
      using T = decltype(type);
      c.make = [g = geometry_of(r), makes = r.makes, bias = r.bias]() -> std::unique_ptr<Kernel> {
        if (makes == ConvRequest::Makes::weights)
          return std::make_unique<DepthwiseBackwardWeightsKernel<T>>(g);
        return std::make_unique<DepthwiseKernel<T>>(g, makes == ConvRequest::Makes::results, bias);
      };
    });
  return {std::move(c)};
}

void register_depthwise_conv(KernelTable& table) {
  add_conv(table, depthwise_conv, ConvPlace::depthwise);
}

}  // namespace tutti::backend
