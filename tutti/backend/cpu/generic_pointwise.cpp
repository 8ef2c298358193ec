// Add, Mul, Scale, activations, dropout.

#include <algorithm>

#include "tutti/backend/cpu/generic.h"
#include "tutti/backend/cpu/sample.h"
#include "tutti/backend/cpu/simd_math.h"
#include "tutti/ops/activation.h"
#include "tutti/ops/dropout.h"
#include "tutti/ops/elementwise.h"

namespace tutti {
namespace {

using simd::AllLanes, simd::Floats, simd::kLanes;

/// out = f(a, b), or f(a, a) with one input. Offsets are empty if all operands share one layout:
/// then memory is one run.
template <class T, class F>
class PointwiseKernel final : public Kernel {
 public:
  PointwiseKernel(const KernelRequest& r, F f)
      : f_(f), n_(r.out[0].elements()), sample_(sample_size(r.out[0])), pair_(r.in.size() > 1) {
    if (r.in.front().layout == r.out[0].layout && r.in.back().layout == r.out[0].layout) return;
    a_ = sample_offsets(r.in.front());
    b_ = sample_offsets(r.in.back());
    y_ = sample_offsets(r.out[0]);
  }

  void run(const KernelArgs& args) override {
    const auto* const a = static_cast<const T*>(args.in[0]);
    const auto* const b = static_cast<const T*>(args.in[pair_ ? 1 : 0]);
    auto* const y = static_cast<T*>(args.out[0]);
    auto [i, end] = share(n_, args.part, args.parts);
    if (y_.empty())
      for (; i + kLanes <= end; i += kLanes) whole(a + i, b + i, y + i);
    while (i < end) {  // the rest of a run, or all of it where layouts differ
      const int64_t count = std::min<int64_t>(kLanes, end - i);
      T left[kLanes] = {}, right[kLanes] = {}, result[kLanes];
      for (int64_t k = 0; k < count; ++k) {
        left[k] = a[place(i + k, a_)];
        right[k] = b[place(i + k, b_)];
      }
      whole(left, right, result);
      for (int64_t k = 0; k < count; ++k) y[place(i + k, y_)] = result[k];
      i += count;
    }
  }

 private:
  void whole(const T* a, const T* b, T* y) const {
    simd::store(y, f_(simd::load(a, AllLanes{}), simd::load(b, AllLanes{})), AllLanes{});
  }
  /// Where element i lies.
  int64_t place(int64_t i, const std::vector<int32_t>& offsets) const {
    if (offsets.empty()) return i;
    const int64_t first = i / sample_ * sample_;
    return first + offsets[static_cast<size_t>(i - first)];
  }

  F f_;
  int64_t n_, sample_;
  bool pair_;
  std::vector<int32_t> a_, b_, y_;
};

template <class F>
bool add_pointwise(const KernelRequest& r, std::vector<KernelCandidate>& candidates, F f) {
  KernelCandidate c = candidate_for(r, "cpu:pointwise");
  c.refusal = refusal_of_layouts(r);
  const bool known = with_float_type(r.out[0].dtype, [&](auto type) {
    c.make = [r, f] { return std::make_unique<PointwiseKernel<decltype(type), F>>(r, f); };
  });
  for (const TensorDesc& d : r.in)
    if (!known || d.dtype != r.out[0].dtype)
      c.refusal =
          fmt::format("operands of types {} and {}", name_of(d.dtype), name_of(r.out[0].dtype));
  candidates.push_back(std::move(c));
  return true;
}

bool add_activation(const KernelRequest& r, std::vector<KernelCandidate>& candidates,
                    const Activation& op) {
  const auto add = [&](auto f) {
    return add_pointwise(r, candidates, [f](Floats x, Floats) { return f(x); });
  };
  switch (op.activation().kind) {
    case ActivationKind::relu: return add([](Floats x) { return simd::relu(x); });
    case ActivationKind::leaky_relu:
      return add([slope = op.activation().slope](Floats x) {
        return simd::where_less(Floats{}, x, x, slope * x);
      });
    case ActivationKind::sigmoid: return add([](Floats x) { return simd::sigmoid(x); });
    case ActivationKind::tanh: return add([](Floats x) { return simd::tanh(x); });
    case ActivationKind::gelu:
      return add([](Floats x) { return 0.5f * x * (1.f + simd::erf(x * 0.70710678f)); });
  }
  return false;
}

bool add_activation_grad(const KernelRequest& r, std::vector<KernelCandidate>& candidates,
                         const ActivationGrad& op) {
  const auto add = [&](auto f) { return add_pointwise(r, candidates, f); };
  switch (op.activation().kind) {
    case ActivationKind::relu:
      return add([](Floats dy, Floats y) { return simd::where_positive(y, dy); });
    case ActivationKind::leaky_relu:
      return add([slope = op.activation().slope](Floats dy, Floats y) {
        return simd::where_less(Floats{}, y, dy, slope * dy);
      });
    case ActivationKind::sigmoid:
      return add([](Floats dy, Floats y) { return dy * y * (1.f - y); });
    case ActivationKind::tanh: return add([](Floats dy, Floats y) { return dy * (1.f - y * y); });
    case ActivationKind::gelu:
      return add([](Floats dy, Floats x) {
        return dy * (0.5f * (1.f + simd::erf(x * 0.70710678f)) +
                     x * simd::exp(-0.5f * x * x) * 0.39894228f);
      });
  }
  return false;
}

/// One Philox block in every lane: sixteen neighbouring quads of elements.
struct WideBits {
  uint32_t word[4][kLanes];

  WideBits(const DropoutKey& key, uint32_t first_quad) {
    constexpr uint32_t kPurpose = static_cast<uint32_t>(Purpose::dropout) * 0x85EBCA6Bu;
    uint32_t k0 = static_cast<uint32_t>(key.seed) ^ kPurpose,
             k1 = static_cast<uint32_t>(key.seed >> 32) ^ key.salt;
    for (uint32_t i = 0; i < kLanes; ++i) word[0][i] = first_quad + i;
    std::fill_n(word[1], kLanes, static_cast<uint32_t>(key.sample));
    std::fill_n(word[2], kLanes, static_cast<uint32_t>(key.step));
    std::fill_n(word[3], kLanes, static_cast<uint32_t>(key.replica));
#pragma GCC unroll 1
    for (int round = 0; round < 10; ++round) {
#pragma omp simd
      for (int i = 0; i < kLanes; ++i) {
        const uint64_t a = uint64_t{word[0][i]} * 0xD2511F53u,
                       b = uint64_t{word[2][i]} * 0xCD9E8D57u;
        word[0][i] = static_cast<uint32_t>(b >> 32) ^ word[1][i] ^ k0;
        word[1][i] = static_cast<uint32_t>(b);
        word[2][i] = static_cast<uint32_t>(a >> 32) ^ word[3][i] ^ k1;
        word[3][i] = static_cast<uint32_t>(a);
      }
      k0 += 0x9E3779B9u;
      k1 += 0xBB67AE85u;
    }
  }
};

template <class T>
class DropoutKernel final : public Kernel {
 public:
  DropoutKernel(const KernelRequest& r, const Dropout& op)
      : samples_(r.out[0].shape[0]), size_(sample_size(r.out[0])),
        threshold_(dropout_threshold(op.probability())), keep_(1 / (1 - op.probability())),
        salt_(op.salt()), plain_(r.in[0].layout.is_plain() && r.out[0].layout.is_plain()),
        x_(sample_offsets(r.in[0])), y_(sample_offsets(r.out[0])) {}

  void run(const KernelArgs& args) override {
    const auto* x = static_cast<const T*>(args.in[0]);
    auto* y = static_cast<T*>(args.out[0]);
    for (int64_t n = 0; n < samples_; ++n, x += size_, y += size_) {
      const DropoutKey key{args.step->seed, args.step->step, args.step->replica,
                           args.first_sample + n, salt_};
      for (int64_t first = 0; first < size_; first += 4 * kLanes) {
        float factor[4 * kLanes];
        factors(WideBits(key, static_cast<uint32_t>(first / 4)), factor);
        const int64_t count = std::min<int64_t>(4 * kLanes, size_ - first);
        if (plain_) {
          for (int64_t i = 0; i < count; ++i)
            y[first + i] = static_cast<T>(static_cast<float>(x[first + i]) * factor[i]);
          continue;
        }
        for (int64_t i = 0; i < count; ++i) {
          const auto at = static_cast<size_t>(first + i);
          y[y_[at]] = static_cast<T>(static_cast<float>(x[x_[at]]) * factor[i]);
        }
      }
    }
  }

 private:
  /// 0 or 1 / (1 - probability) for 64 elements in order; word w of quad q belongs to element 4 * q
  /// + w.
  void factors(const WideBits& bits, float* factor) const {
    for (int q = 0; q < kLanes; ++q)
      for (int w = 0; w < 4; ++w) factor[4 * q + w] = bits.word[w][q] < threshold_ ? 0.f : keep_;
  }

  int64_t samples_, size_;
  uint32_t threshold_;
  float keep_;
  uint32_t salt_;
  bool plain_;
  std::vector<int32_t> x_, y_;
};

bool add_dropout(const KernelRequest& r, std::vector<KernelCandidate>& candidates,
                 const Dropout& op) {
  KernelCandidate c = candidate_for(r, "cpu:dropout");
  c.refusal = refusal_of_layouts(r);
  if (!with_float_type(r.in[0].dtype, [&](auto type) {
        c.make = [r, op] { return std::make_unique<DropoutKernel<decltype(type)>>(r, op); };
      }))
    c.refusal = fmt::format("no dropout of {}", name_of(r.in[0].dtype));
  candidates.push_back(std::move(c));
  return true;
}

}  // namespace

bool append_pointwise_candidates(const KernelRequest& r, std::vector<KernelCandidate>& candidates) {
  if (dynamic_cast<const Add*>(r.op))
    return add_pointwise(r, candidates, [](Floats a, Floats b) { return a + b; });
  if (dynamic_cast<const Mul*>(r.op))
    return add_pointwise(r, candidates, [](Floats a, Floats b) { return a * b; });
  if (const auto* op = dynamic_cast<const Scale*>(r.op))
    return add_pointwise(r, candidates,
                         [factor = op->factor()](Floats x, Floats) { return factor * x; });
  if (const auto* op = dynamic_cast<const Activation*>(r.op))
    return add_activation(r, candidates, *op);
  if (const auto* op = dynamic_cast<const ActivationGrad*>(r.op))
    return add_activation_grad(r, candidates, *op);
  if (const auto* op = dynamic_cast<const Dropout*>(r.op)) return add_dropout(r, candidates, *op);
  return false;
}

}  // namespace tutti
