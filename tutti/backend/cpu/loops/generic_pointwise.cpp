// Add, Mul, Scale, activations, dropout.

#include <algorithm>
#include <numeric>

#include "tutti/backend/cpu/kernel/kernel_table.h"
#include "tutti/backend/cpu/kernel/sample.h"
#include "tutti/backend/cpu/simd/simd_math.h"
#include "tutti/backend/cpu/simd/wide_bits.h"
#include "tutti/ops/activation.h"
#include "tutti/ops/dropout.h"
#include "tutti/ops/elementwise.h"
#include "tutti/ops/gaussian_sample.h"

namespace tutti::backend {
namespace {

using simd::AllLanes, simd::Floats, simd::kLanes;

/// out = f(a, b), or f(a, a) with one input. If all operands share one layout, memory is one run.
template <class T, class F>
class PointwiseKernel final : public Kernel {
 public:
  PointwiseKernel(const KernelRequest& r, F f)
      : f_(f), n_(r.out[0].elements()), sample_(sample_size(r.out[0])), pair_(r.in.size() > 1),
        one_run_(r.in.front().layout == r.out[0].layout && r.in.back().layout == r.out[0].layout),
        a_(r.in.front()), b_(r.in.back()), y_(r.out[0]) {}

  void run(const KernelArgs& args) override {
    const auto* const a = static_cast<const T*>(args.in[0]);
    const auto* const b = static_cast<const T*>(args.in[pair_ ? 1 : 0]);
    auto* const y = static_cast<T*>(args.out[0]);
    auto [i, end] = share(n_, args.thread, args.threads);
    if (one_run_)
      for (; i + kLanes <= end; i += kLanes) whole(a + i, b + i, y + i);
    while (i < end) {  // the rest of a run, or all of it where layouts differ
      const int64_t first = one_run_ ? i : i / sample_ * sample_;
      const int64_t count =
          std::min<int64_t>(kLanes, (one_run_ ? end : std::min(end, first + sample_)) - i);
      T left[kLanes] = {}, right[kLanes] = {}, result[kLanes];
      Places from_a, from_b, to;
      places(a_, i - first, count, from_a);
      places(b_, i - first, count, from_b);
      places(y_, i - first, count, to);
      for (int64_t k = 0; k < count; ++k) {
        left[k] = a[first + from_a[k]];
        right[k] = b[first + from_b[k]];
      }
      whole(left, right, result);
      for (int64_t k = 0; k < count; ++k) y[first + to[k]] = result[k];
      i += count;
    }
  }

 private:
  void whole(const T* a, const T* b, T* y) const {
    simd::store(y, f_(simd::load(a, AllLanes{}), simd::load(b, AllLanes{})), AllLanes{});
  }
  using Places = int64_t[kLanes];
  /// Finds the places of elements [first, first + count) of a sample, or of the run.
  void places(const SampleOffsets& offsets, int64_t first, int64_t count, Places& found) const {
    if (one_run_)
      std::iota(found, found + count, first);
    else
      offsets.read(first, count, found);
  }

  F f_;
  int64_t n_, sample_;
  bool pair_, one_run_;
  SampleOffsets a_, b_, y_;
};

template <class F>
KernelCandidate pointwise_kernel(const KernelRequest& r, F f) {
  KernelCandidate c = candidate_for(r, "cpu:pointwise");
  c.refusal = refusal_of_layouts(r);
  const bool known = with_float_type(r.out[0].dtype, [&](auto type) {
    c.make = [r, f] { return std::make_unique<PointwiseKernel<decltype(type), F>>(r, f); };
  });
  for (const TensorDesc& d : r.in)
    if (!known || d.dtype != r.out[0].dtype)
      c.refusal =
          fmt::format("operands of types {} and {}", name_of(d.dtype), name_of(r.out[0].dtype));
  return c;
}

// gelu_tanh: (1 + tanh(u)) / 2 is the sigmoid of 2 u.
constexpr float kGeluFactor = 1.5957691f;  // 2 sqrt(2 / pi)
constexpr float kGeluCube = 0.044715f;
Floats gelu_exponent(Floats x) { return kGeluFactor * (x + kGeluCube * x * x * x); }

/// tanh(log(1 + exp(x))) = n / (n + 2) with n = exp(x) (exp(x) + 2), which is 1 for large x.
Floats mish_factor(Floats x) {
  constexpr float kOne = 20;  // from here on
  const Floats e = simd::exp(simd::where_less(x, simd::splat(kOne), x, simd::splat(kOne))),
               n = e * (e + 2.f);
  return n / (n + 2.f);
}

KernelCandidate activation_kernel(const KernelRequest& r, const ops::Activation& op) {
  const auto add = [&](auto f) {
    return pointwise_kernel(r, [f](Floats x, Floats) { return f(x); });
  };
  switch (op.activation().kind) {
    case ops::ActivationKind::relu: return add([](Floats x) { return simd::relu(x); });
    case ops::ActivationKind::leaky_relu:
      return add([slope = op.activation().slope](Floats x) {
        return simd::where_less(Floats{}, x, x, slope * x);
      });
    case ops::ActivationKind::sigmoid: return add([](Floats x) { return simd::sigmoid(x); });
    case ops::ActivationKind::tanh: return add([](Floats x) { return simd::tanh(x); });
    case ops::ActivationKind::gelu:
      return add([](Floats x) { return 0.5f * x * (1.f + simd::erf(x * 0.70710678f)); });
    case ops::ActivationKind::gelu_tanh:
      return add([](Floats x) { return x * simd::sigmoid(gelu_exponent(x)); });
    case ops::ActivationKind::silu: return add([](Floats x) { return x * simd::sigmoid(x); });
    case ops::ActivationKind::mish: return add([](Floats x) { return x * mish_factor(x); });
  }
  return {};
}

KernelCandidate activation_grad_kernel(const KernelRequest& r, const ops::ActivationGrad& op) {
  const auto add = [&](auto f) { return pointwise_kernel(r, f); };
  switch (op.activation().kind) {
    case ops::ActivationKind::relu:
      return add([](Floats dy, Floats y) { return simd::where_positive(y, dy); });
    case ops::ActivationKind::leaky_relu:
      return add([slope = op.activation().slope](Floats dy, Floats y) {
        return simd::where_less(Floats{}, y, dy, slope * dy);
      });
    case ops::ActivationKind::sigmoid:
      return add([](Floats dy, Floats y) { return dy * y * (1.f - y); });
    case ops::ActivationKind::tanh:
      return add([](Floats dy, Floats y) { return dy * (1.f - y * y); });
    case ops::ActivationKind::gelu:
      return add([](Floats dy, Floats x) {
        return dy * (0.5f * (1.f + simd::erf(x * 0.70710678f)) +
                     x * simd::exp(-0.5f * x * x) * 0.39894228f);
      });
    case ops::ActivationKind::gelu_tanh:
      return add([](Floats dy, Floats x) {
        const Floats s = simd::sigmoid(gelu_exponent(x)),
                     slope = kGeluFactor * (1.f + 3 * kGeluCube * x * x);
        return dy * s * (1.f + x * (1.f - s) * slope);
      });
    case ops::ActivationKind::silu:
      return add([](Floats dy, Floats x) {
        const Floats s = simd::sigmoid(x);
        return dy * s * (1.f + x * (1.f - s));
      });
    case ops::ActivationKind::mish:
      return add([](Floats dy, Floats x) {
        const Floats t = mish_factor(x);
        return dy * (t + x * (1.f - t * t) * simd::sigmoid(x));
      });
  }
  return {};
}

template <class T>
class DropoutKernel final : public Kernel {
 public:
  DropoutKernel(const KernelRequest& r, const ops::Dropout& op)
      : samples_(r.out[0].shape[0]), size_(sample_size(r.out[0])),
        threshold_(ops::dropout_threshold(op.probability())), keep_(1 / (1 - op.probability())),
        salt_(op.salt()), plain_(r.in[0].layout.is_plain() && r.out[0].layout.is_plain()),
        channels_(in_last_channels(r, op.all() > 0)), first_(op.first()), all_(op.all()),
        positions_(r.in[0].shape[r.in[0].shape.rank() - 1]), x_(r.in[0]), y_(r.out[0]) {}

  void run(const KernelArgs& args) override {
    const auto* x = static_cast<const T*>(args.in[0]);
    auto* y = static_cast<T*>(args.out[0]);
    for (int64_t n = 0; n < samples_; ++n, x += size_, y += size_) {
      const ops::SampleKey key{args.step->seed, args.step->step, args.step->replica,
                               args.first_sample + n, salt_};
      if (channels_ > 0) {
        drop_by_channels(key, x, y);
        continue;
      }
      if (all_ > 0) {
        drop_some_positions(key, x, y);
        continue;
      }
      for (int64_t first = 0; first < size_; first += 4 * kLanes) {
        float factor[4 * kLanes];
        factors(WideBits(Purpose::dropout, key, static_cast<uint32_t>(first / 4)), factor);
        const int64_t count = std::min<int64_t>(4 * kLanes, size_ - first);
        if (plain_) {
          for (int64_t i = 0; i < count; ++i)
            y[first + i] = static_cast<T>(static_cast<float>(x[first + i]) * factor[i]);
          continue;
        }
        int64_t from[4 * kLanes], to[4 * kLanes];
        x_.read(first, count, from);
        y_.read(first, count, to);
        for (int64_t i = 0; i < count; ++i)
          y[to[i]] = static_cast<T>(static_cast<float>(x[from[i]]) * factor[i]);
      }
    }
  }

 private:
  /// Returns the number of channels, for operands whose channels are innermost and whose quads have
  /// one channel each, or that have `some` positions; 0 for others.
  static int64_t in_last_channels(const KernelRequest& r, bool some) {
    const Shape& shape = r.in[0].shape;
    const Layout last = Layout::channels_last(shape.rank());
    const bool fits = shape.rank() > 2 && (some || shape.elements_from(2) % 4 == 0) &&
                      r.in[0].layout == last && r.out[0].layout == last;
    return fits ? shape[1] : 0;
  }

  /// Handles 64 positions of 16 channels at a time: numbers are drawn by channel, and used by
  /// position. With some positions it handles 60: a channel's first element may be within a quad.
  void drop_by_channels(const ops::SampleKey& key, const T* x, T* y) const {
    const int64_t positions = size_ / channels_, all = all_ > 0 ? all_ : positions,
                  step = all_ > 0 ? 4 * kLanes - 4 : 4 * kLanes;
    for (int64_t c = 0; c < channels_; c += kLanes)
      for (int64_t p = 0; p < positions; p += step) {
        const int64_t some = std::min<int64_t>(kLanes, channels_ - c),
                      count = std::min<int64_t>(step, positions - p);
        float factor[4 * kLanes][kLanes] = {};
        for (int64_t i = 0; i < some; ++i) {
          const int64_t element = (c + i) * all + first_ + p;
          const WideBits bits(Purpose::dropout, key, static_cast<uint32_t>(element / 4));
          const auto within = static_cast<int>(element % 4);
          if (within > 0)
            for (int e = within; e < 4 * kLanes; ++e)
              factor[e - within][i] = bits.word[e % 4][e / 4] < threshold_ ? 0.f : keep_;
          else
            for (int q = 0; q < kLanes; ++q)
              for (int w = 0; w < 4; ++w)
                factor[4 * q + w][i] = bits.word[w][q] < threshold_ ? 0.f : keep_;
        }
        for (int64_t k = 0; k < count; ++k) {
          const int64_t at = (p + k) * channels_ + c;
          const Floats f = simd::load(factor[k], AllLanes{});
          if (some == kLanes)
            simd::store(y + at, f * simd::load(x + at, AllLanes{}), AllLanes{});
          else
            for (int64_t i = 0; i < some; ++i)
              y[at + i] = static_cast<T>(factor[k][i] * static_cast<float>(x[at + i]));
        }
      }
  }

  /// Handles plain operands that have some positions.
  void drop_some_positions(const ops::SampleKey& key, const T* x, T* y) const {
    for (int64_t at = 0; at < size_;) {
      const int64_t p = at % positions_, element = at / positions_ * all_ + first_ + p;
      float factor[4 * kLanes];
      factors(WideBits(Purpose::dropout, key, static_cast<uint32_t>(element / 4)), factor);
      const int64_t within = element % 4,
                    count = std::min<int64_t>(4 * kLanes - within, positions_ - p);
      for (int64_t i = 0; i < count; ++i, ++at)
        y[at] = static_cast<T>(static_cast<float>(x[at]) * factor[within + i]);
    }
  }

  /// Computes 0 or 1 / (1 - probability) for 64 elements in order; word w of quad q belongs to
  /// element 4 * q + w.
  void factors(const WideBits& bits, float* factor) const {
    for (int q = 0; q < kLanes; ++q)
      for (int w = 0; w < 4; ++w) factor[4 * q + w] = bits.word[w][q] < threshold_ ? 0.f : keep_;
  }

  int64_t samples_, size_;
  uint32_t threshold_;
  float keep_;
  uint32_t salt_;
  bool plain_;
  int64_t channels_, first_, all_, positions_;
  SampleOffsets x_, y_;
};

KernelCandidate dropout_kernel(const KernelRequest& r, const ops::Dropout& op) {
  KernelCandidate c = candidate_for(r, "cpu:dropout");
  c.refusal = refusal_of_layouts(r);
  const Layout& layout = r.in[0].layout;
  if (op.all() > 0 &&
      ((layout != Layout::channels_last(3) && !layout.is_plain()) || r.out[0].layout != layout))
    c.refusal = "some positions only plain, or with channels last";
  choose_kernel<DropoutKernel>(c, r.in[0].dtype, "dropout", r, op);
  return c;
}

}  // namespace

void register_pointwise_kernels(KernelTable& table) {
  table.add<ops::Add>([](const KernelRequest& r) {
    return pointwise_kernel(r, [](Floats a, Floats b) { return a + b; });
  });
  table.add<ops::Mul>([](const KernelRequest& r) {
    return pointwise_kernel(r, [](Floats a, Floats b) { return a * b; });
  });
  table.add<ops::Scale>([](const KernelRequest& r, const ops::Scale& op) {
    return pointwise_kernel(r, [factor = op.factor()](Floats x, Floats) { return factor * x; });
  });
  table.add<ops::Activation>(activation_kernel);
  table.add<ops::ActivationGrad>(activation_grad_kernel);
  table.add<ops::Dropout>(dropout_kernel);
}

}  // namespace tutti::backend
