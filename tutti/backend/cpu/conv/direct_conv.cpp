// 3x3 convolutions of stride 1 and padding 1 in blocks of 16 channels, written here for AVX-512: a
// row's pixels are held in registers in equal shares, while oneDNN cuts 32 pixels into 28 + 4, and
// the 4 wait for each other. Weight gradients are added to the thread's accumulator at once. bf16
// operands are widened first, weights stay f32: faster than bf16 arithmetic on machines whose bf16
// instructions run at half the rate.

#include <algorithm>

#include "tutti/backend/cpu/conv/conv.h"
#include "tutti/backend/cpu/simd/simd.h"

namespace tutti::backend {
namespace {

using simd::AllLanes, simd::Floats, simd::kLanes;

constexpr int64_t kTap =
    kLanes * kLanes;  ///< weights of one tap between two channel blocks: [16 in][16 out]
constexpr int64_t kTaps = 9;

/// One sample, in terms of the convolution that is computed: for the backward convolution "in" is
/// dy and "out" is dx.
struct Image {
  int64_t height, width;
  int64_t in_blocks, out_blocks;
  int64_t row() const { return width * kLanes; }
  int64_t plane() const { return height * row(); }
};

/// The place of the weights of (out block, in block, tap): out * out_stride + in * in_stride + tap
/// * tap_stride + first.
struct Weights {
  const float* data;
  int64_t out_stride, in_stride, tap_stride, first;
};

Weights forward_weights(const float* w, const Image& image) {
  return {w, image.in_blocks * kTaps * kTap, kTaps * kTap, kTap, 0};
}

/// dx is the convolution of dy with the taps in reverse and in and out exchanged.
Weights backward_weights(const float* w, const Image& image) {
  return {w, kTaps * kTap, image.out_blocks * kTaps * kTap, -kTap, (kTaps - 1) * kTap};
}

/// Computes kPixels neighbours of one output row, for kOut blocks of output channels. kLeft,
/// kRight: the first (last) pixel is the row's border, whose outer tap reads padding and is
/// skipped. y: the first pixel; x: the pixel at the same place of in block 0.
template <int kPixels, int kOut, bool kLeft, bool kRight>
void pixels(const Image& image, const float* x, const Weights& w, int64_t out_block, int64_t row,
            float* y) {
  Floats sums[kOut][kPixels]{};
  const int64_t first_tap = row == 0 ? 1 : 0, last_tap = row == image.height - 1 ? 1 : 2;
  for (int64_t in = 0; in < image.in_blocks; ++in) {
    const float* const plane = x + in * image.plane();
    const float* const weights = w.data + out_block * w.out_stride + in * w.in_stride + w.first;
    for (int64_t kh = first_tap; kh <= last_tap; ++kh) {
      const auto tap = [&]<int kw>() {
        constexpr int kBegin = kLeft && kw == 0 ? 1 : 0,
                      kEnd = kRight && kw == 2 ? kPixels - 1 : kPixels;
        const float* const from = plane + (kh - 1) * image.row() + (kw - 1) * kLanes;
        const float* const taps = weights + (kh * 3 + kw) * w.tap_stride;
        for (int c = 0; c < kLanes; ++c) {
          Floats v[kOut];
#pragma GCC unroll 2
          for (int k = 0; k < kOut; ++k)
            v[k] = simd::load(taps + k * w.out_stride + c * kLanes, AllLanes{});
#pragma GCC unroll 16
          for (int p = kBegin; p < kEnd; ++p)
#pragma GCC unroll 2
            for (int k = 0; k < kOut; ++k) sums[k][p] += v[k] * from[p * kLanes + c];
        }
      };
      tap.template operator()<0>();
      tap.template operator()<1>();
      tap.template operator()<2>();
    }
  }
#pragma GCC unroll 2
  for (int k = 0; k < kOut; ++k)
#pragma GCC unroll 16
    for (int p = 0; p < kPixels; ++p)
      simd::store(y + k * image.plane() + p * kLanes, sums[k][p], AllLanes{});
}

/// Convolves one sample: rows of 16 pixels at a time, or rows of 8 with two blocks of output
/// channels.
void convolve(const Image& image, const float* x, const Weights& w, float* y) {
  const int64_t last = image.width - 16;
  const int64_t step = image.width == 8 ? 2 : 1;
  for (int64_t out = 0; out < image.out_blocks; out += step)
    for (int64_t row = 0; row < image.height; ++row) {
      const float* const from = x + row * image.row();
      float* const to = y + out * image.plane() + row * image.row();
      if (image.width == 8) {
        pixels<8, 2, true, true>(image, from, w, out, row, to);
      } else if (last == 0) {
        pixels<16, 1, true, true>(image, from, w, out, row, to);
      } else {
        pixels<16, 1, true, false>(image, from, w, out, row, to);
        for (int64_t p = 16; p < last; p += 16)
          pixels<16, 1, false, false>(image, from + p * kLanes, w, out, row, to + p * kLanes);
        pixels<16, 1, false, true>(image, from + last * kLanes, w, out, row, to + last * kLanes);
      }
    }
}

/// Adds to dw of one tap between two channel blocks, over `rows` rows: dw[c][k] += sum x[p +
/// tap][c] * dy[p][k]. The sum starts at 0, so that long batches are added in two levels. x:
/// shifted by the tap; pixels begin .. end - 1 of a row count.
void add_tap(const float* x, const float* dy, int64_t rows, int64_t row_stride, int64_t begin,
             int64_t end, float* dw) {
  Floats sums[kLanes]{};
  for (int64_t r = 0; r < rows; ++r, x += row_stride, dy += row_stride)
    for (int64_t p = begin; p < end; ++p) {
      const Floats v = simd::load(dy + p * kLanes, AllLanes{});
#pragma GCC unroll 16
      for (int c = 0; c < kLanes; ++c) sums[c] += v * x[p * kLanes + c];
    }
#pragma GCC unroll 16
  for (int c = 0; c < kLanes; ++c)
    simd::store(dw + c * kLanes, simd::load(dw + c * kLanes, AllLanes{}) + sums[c], AllLanes{});
}

/// Handles one sample in strips of rows small enough that x and dy stay in the first-level cache
/// for all nine taps.
void add_weight_gradient(const Image& image, const float* x, const float* dy, float* dw) {
  const int64_t strip = std::max<int64_t>(1, 128 / image.width);
  for (int64_t out = 0; out < image.out_blocks; ++out)
    for (int64_t in = 0; in < image.in_blocks; ++in)
      for (int64_t top = 0; top < image.height; top += strip)
        for (int64_t kh = 0; kh < 3; ++kh) {
          const int64_t begin = std::max<int64_t>(top, 1 - kh),
                        end = std::min({top + strip, image.height, image.height + 1 - kh});
          if (begin >= end) continue;
          for (int64_t kw = 0; kw < 3; ++kw)
            add_tap(x + in * image.plane() + (begin + kh - 1) * image.row() + (kw - 1) * kLanes,
                    dy + out * image.plane() + begin * image.row(), end - begin, image.row(),
                    kw == 0 ? 1 : 0, kw == 2 ? image.width - 1 : image.width,
                    dw + ((out * image.in_blocks + in) * kTaps + kh * 3 + kw) * kTap);
        }
}

/// Returns n elements (a multiple of 16) as f32: in place, or widened into `to`.
const float* as_f32(const float* from, float*, int64_t) { return from; }
const float* as_f32(const bf16* from, float* to, int64_t n) {
  for (int64_t i = 0; i < n; i += kLanes)
    simd::store(to + i, simd::load(from + i, AllLanes{}), AllLanes{});
  return to;
}

template <class T>
class DirectConvKernel final : public Kernel {
 public:
  DirectConvKernel(const Image& image, int64_t samples, bool backward)
      : image_(image), samples_(samples), backward_(backward) {}
  size_t workspace_bytes() const override {
    return kIsFloat ? 0 : static_cast<size_t>(in_size() + out_size()) * sizeof(float);
  }
  void run(const KernelArgs& args) override {
    const auto* const w = static_cast<const float*>(args.in[1]);
    const Weights weights = backward_ ? backward_weights(w, image_) : forward_weights(w, image_);
    auto* const workspace = static_cast<float*>(args.workspace);
    for (int64_t n = 0; n < samples_; ++n) {
      const float* const x =
          as_f32(static_cast<const T*>(args.in[0]) + n * in_size(), workspace, in_size());
      T* const y = static_cast<T*>(args.out[0]) + n * out_size();
      if constexpr (kIsFloat) {
        convolve(image_, x, weights, y);
      } else {
        float* const wide = workspace + in_size();
        convolve(image_, x, weights, wide);
        for (int64_t i = 0; i < out_size(); i += kLanes)
          simd::store(y + i, simd::load(wide + i, AllLanes{}), AllLanes{});
      }
    }
  }

 private:
  static constexpr bool kIsFloat = std::is_same_v<T, float>;
  int64_t in_size() const { return image_.in_blocks * image_.plane(); }
  int64_t out_size() const { return image_.out_blocks * image_.plane(); }

  Image image_;
  int64_t samples_;
  bool backward_;
};

template <class T>
class DirectConvBackwardWeightsKernel final : public Kernel {
 public:
  DirectConvBackwardWeightsKernel(const Image& image, int64_t samples)
      : image_(image), samples_(samples) {}
  size_t workspace_bytes() const override {
    return std::is_same_v<T, float> ? 0 : static_cast<size_t>(x_size() + dy_size()) * sizeof(float);
  }
  size_t state_bytes() const override { return static_cast<size_t>(weights()) * sizeof(float); }
  int state_output() const override { return 0; }
  void run(const KernelArgs& args) override {
    auto* const dw = static_cast<float*>(args.state);
    auto* const workspace = static_cast<float*>(args.workspace);
    if (args.first) std::fill_n(dw, weights(), 0.f);
    for (int64_t n = 0; n < samples_; ++n) {
      const float* const x =
          as_f32(static_cast<const T*>(args.in[0]) + n * x_size(), workspace, x_size());
      const float* const dy = as_f32(static_cast<const T*>(args.in[1]) + n * dy_size(),
                                     workspace + x_size(), dy_size());
      add_weight_gradient(image_, x, dy, dw);
    }
  }
  void finish(const FinishArgs& args) override {
    simd::add_states(args, static_cast<float*>(args.out[0]), weights());
  }

 private:
  int64_t x_size() const { return image_.in_blocks * image_.plane(); }
  int64_t dy_size() const { return image_.out_blocks * image_.plane(); }
  int64_t weights() const { return image_.in_blocks * image_.out_blocks * kTaps * kTap; }

  Image image_;
  int64_t samples_;
};

Layout weight_layout(int first, int second) {
  Layout layout;
  layout.blocks[0] = {static_cast<int8_t>(first), kLanes};
  layout.blocks[1] = {static_cast<int8_t>(second), kLanes};
  layout.num_blocks = 2;
  return layout;
}

std::string refusal_of_direct(const ConvRequest& r) {
  const auto ones = [&](const std::array<int64_t, 3>& v) { return v[0] == 1 && v[1] == 1; };
  if (!TUTTI_AVX512) return "built without AVX-512";
  if (r.bias || r.activation) return "no bias or activation";
  if (r.a.spatial != 2 || r.a.groups != 1 || r.w.shape[2] != 3 || r.w.shape[3] != 3)
    return "only 3x3, ungrouped";
  if (!ones(r.a.stride) || !ones(r.a.dilation) || !ones(r.a.pad_low) || !ones(r.a.pad_high))
    return "only stride 1, dilation 1, padding 1";
  for (const TensorDesc* d : {&r.from(), &r.to()})
    if (d->layout != Layout::blocked_channels(kLanes) || d->shape[1] % kLanes != 0)
      return "only blocks of 16 channels";
  if (r.from().dtype != r.to().dtype ||
      (r.from().dtype != DType::f32 && r.from().dtype != DType::bf16))
    return "only f32 or bf16, both alike";
  if (r.from().shape[3] % 16 != 0 && (r.from().shape[3] != 8 || r.to().shape[1] % 32 != 0))
    return "rows must be multiples of 16 pixels, or 8 with 32 outputs";
  return {};
}

/// Returns the candidate for layout b16c with 3x3 taps, or a refusal, if it is as `likely` the
/// fastest as said.
KernelCandidates direct_conv(const ConvRequest& r, bool likely) {
  KernelCandidate c{"cpu:direct_3x3", refusal_of_direct(r), r.request.in, r.request.out, {}};
  const bool backward = r.makes_data();
  r.want_weights(c, backward ? weight_layout(0, 1) : weight_layout(1, 0));
  const bool f32 = r.x.dtype == DType::f32;
  // bf16 depends on how fast the machine's bf16 instructions are
  if ((c.refusal.empty() && f32) != likely) return {};
  if (c.refusal.empty()) {
    const Image image{r.from().shape[2], r.from().shape[3], r.from().shape[1] / kLanes,
                      r.to().shape[1] / kLanes};
    c.make = [image, samples = r.x.shape[0], f32, sum = r.makes_weights(),
              backward]() -> std::unique_ptr<Kernel> {
      if (sum && f32)
        return std::make_unique<DirectConvBackwardWeightsKernel<float>>(image, samples);
      if (sum) return std::make_unique<DirectConvBackwardWeightsKernel<bf16>>(image, samples);
      if (f32) return std::make_unique<DirectConvKernel<float>>(image, samples, backward);
      return std::make_unique<DirectConvKernel<bf16>>(image, samples, backward);
    };
  }
  return {std::move(c)};
}

}  // namespace

void register_direct_conv(KernelTable& table) {
  add_conv(
      table, [](const ConvRequest& r) { return direct_conv(r, true); }, ConvPlace::likely_direct);
  add_conv(
      table, [](const ConvRequest& r) { return direct_conv(r, false); }, ConvPlace::direct);
}

}  // namespace tutti::backend
