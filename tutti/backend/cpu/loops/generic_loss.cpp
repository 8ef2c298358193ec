// Losses of values and their gradients: element by element in row-major order, sums in double
// precision. Softmax cross-entropy has a file of its own.

#include <algorithm>
#include <cmath>

#include "tutti/backend/cpu/kernel/kernel_table.h"
#include "tutti/backend/cpu/kernel/sample.h"
#include "tutti/ops/losses.h"

namespace tutti::backend {
namespace {

constexpr int64_t kChunk = 64;

/// An operand of any layout, read and written in row-major order, up to kChunk elements at a time.
template <class T>
class Samples {
 public:
  explicit Samples(const TensorDesc& d)
      : samples(d.shape[0]), size(sample_size(d)), plain_(d.layout.is_plain()), offsets_(d) {}
  int64_t samples, size;

  /// Reads elements [first, first + count) of sample n.
  void read(const void* memory, int64_t n, int64_t first, int64_t count, float* values) const {
    const T* const sample = static_cast<const T*>(memory) + n * size;
    if (plain_) {
      for (int64_t i = 0; i < count; ++i) values[i] = static_cast<float>(sample[first + i]);
      return;
    }
    int64_t at[kChunk];
    offsets_.read(first, count, at);
    for (int64_t i = 0; i < count; ++i) values[i] = static_cast<float>(sample[at[i]]);
  }
  void write(void* memory, int64_t n, int64_t first, int64_t count, const float* values) const {
    T* const sample = static_cast<T*>(memory) + n * size;
    if (plain_) {
      for (int64_t i = 0; i < count; ++i) sample[first + i] = static_cast<T>(values[i]);
      return;
    }
    int64_t at[kChunk];
    offsets_.read(first, count, at);
    for (int64_t i = 0; i < count; ++i) sample[at[i]] = static_cast<T>(values[i]);
  }

 private:
  bool plain_;
  SampleOffsets offsets_;
};

/// Calls f(x, y, count) with the values of both operands, chunk by chunk; then calls g(sample,
/// first, count) for each.
template <class X, class Y, class F, class G>
void for_each_chunk(const Samples<X>& x, const Samples<Y>& y, const KernelArgs& args, F f, G g) {
  float left[kChunk], right[kChunk];
  for (int64_t n = 0; n < x.samples; ++n)
    for (int64_t first = 0; first < x.size; first += kChunk) {
      const int64_t count = std::min(kChunk, x.size - first);
      x.read(args.in[0], n, first, count, left);
      y.read(args.in[1], n, first, count, right);
      f(left, right, count);
      g(n, first, count);
    }
}
constexpr auto kNothing = [](int64_t, int64_t, int64_t) {};

/// Returns the threads' sums, added up in their order.
double total_of(const FinishArgs& args) {
  double total = 0;
  for (const void* state : args.states) total += *static_cast<const double*>(state);
  return total;
}

float loss_of(const ops::PointwiseLossAttributes& a, float x, float t) {
  const float d = x - t;
  switch (a.kind) {
    case ops::PointwiseLossKind::mse: return d * d;
    case ops::PointwiseLossKind::mae: return std::abs(d);
    case ops::PointwiseLossKind::huber:
      return std::abs(d) < a.delta ? 0.5f * d * d : a.delta * (std::abs(d) - 0.5f * a.delta);
    case ops::PointwiseLossKind::bce_with_logits:
      return (1 - t) * x + (1 + (a.pos_weight - 1) * t) *
                               (std::log1p(std::exp(-std::abs(x))) + std::max(-x, 0.f));
  }
  return 0;
}

float slope_of(const ops::PointwiseLossAttributes& a, float x, float t) {
  const float d = x - t;
  switch (a.kind) {
    case ops::PointwiseLossKind::mse: return 2 * d;
    case ops::PointwiseLossKind::mae: return d > 0 ? 1.f : d < 0 ? -1.f : 0.f;
    case ops::PointwiseLossKind::huber: return d < -a.delta ? -a.delta : d > a.delta ? a.delta : d;
    case ops::PointwiseLossKind::bce_with_logits:
      return 1 - t - (1 + (a.pos_weight - 1) * t) / (1 + std::exp(x));
  }
  return 0;
}

/// Returns the number of elements over which a mean is taken.
double batch_elements(const StepInfo& step, int64_t sample_size) {
  return static_cast<double>(step.batch) * static_cast<double>(sample_size);
}

template <class T, class U>
class PointwiseLossKernel final : public Kernel {
 public:
  PointwiseLossKernel(const KernelRequest& r, const ops::PointwiseLossAttributes& a)
      : a_(a), x_(r.in[0]), t_(r.in[1]) {}
  size_t state_bytes() const override { return sizeof(double); }
  void run(const KernelArgs& args) override {
    auto* const sum = static_cast<double*>(args.state);
    if (args.first) *sum = 0;
    for_each_chunk(
        x_, t_, args,
        [&](const float* x, const float* t, int64_t count) {
          for (int64_t k = 0; k < count; ++k) *sum += static_cast<double>(loss_of(a_, x[k], t[k]));
        },
        kNothing);
  }
  void finish(const FinishArgs& args) override {
    if (args.thread == 0)
      *static_cast<float*>(args.out[0]) = static_cast<float>(
          static_cast<double>(a_.scale) * total_of(args) / batch_elements(*args.step, x_.size));
  }

 private:
  ops::PointwiseLossAttributes a_;
  Samples<T> x_;
  Samples<U> t_;
};

template <class T, class U>
class PointwiseLossGradKernel final : public Kernel {
 public:
  PointwiseLossGradKernel(const KernelRequest& r, const ops::PointwiseLossAttributes& a)
      : a_(a), x_(r.in[0]), dx_(r.out[0]), t_(r.in[1]) {}
  void run(const KernelArgs& args) override {
    const auto factor =
        static_cast<float>(static_cast<double>(a_.scale) / batch_elements(*args.step, x_.size));
    float dx[kChunk];
    for_each_chunk(
        x_, t_, args,
        [&](const float* x, const float* t, int64_t count) {
          for (int64_t k = 0; k < count; ++k) dx[k] = factor * slope_of(a_, x[k], t[k]);
        },
        [&](int64_t n, int64_t first, int64_t count) {
          dx_.write(args.out[0], n, first, count, dx);
        });
  }

 private:
  ops::PointwiseLossAttributes a_;
  Samples<T> x_, dx_;
  Samples<U> t_;
};

template <class T, class U>
class GaussianKLKernel final : public Kernel {
 public:
  GaussianKLKernel(const KernelRequest& r, float scale)
      : scale_(scale), mean_(r.in[0]), logvar_(r.in[1]) {}
  size_t state_bytes() const override { return sizeof(double); }
  void run(const KernelArgs& args) override {
    auto* const sum = static_cast<double*>(args.state);
    if (args.first) *sum = 0;
    for_each_chunk(
        mean_, logvar_, args,
        [&](const float* mean, const float* logvar, int64_t count) {
          for (int64_t k = 0; k < count; ++k)
            *sum += static_cast<double>(0.5f *
                                        (mean[k] * mean[k] + std::exp(logvar[k]) - 1 - logvar[k]));
        },
        kNothing);
  }
  void finish(const FinishArgs& args) override {
    if (args.thread == 0)
      *static_cast<float*>(args.out[0]) = static_cast<float>(
          static_cast<double>(scale_) * total_of(args) / static_cast<double>(args.step->batch));
  }

 private:
  float scale_;
  Samples<T> mean_;
  Samples<U> logvar_;
};

template <class T, class U>
class GaussianKLGradKernel final : public Kernel {
 public:
  GaussianKLGradKernel(const KernelRequest& r, float scale)
      : scale_(scale), mean_(r.in[0]), dmean_(r.out[0]), logvar_(r.in[1]), dlogvar_(r.out[1]) {}
  void run(const KernelArgs& args) override {
    const float factor = scale_ / static_cast<float>(args.step->batch);
    float dmean[kChunk], dlogvar[kChunk];
    for_each_chunk(
        mean_, logvar_, args,
        [&](const float* mean, const float* logvar, int64_t count) {
          for (int64_t k = 0; k < count; ++k) {
            dmean[k] = factor * mean[k];
            dlogvar[k] = factor * 0.5f * (std::exp(logvar[k]) - 1);
          }
        },
        [&](int64_t n, int64_t first, int64_t count) {
          dmean_.write(args.out[0], n, first, count, dmean);
          dlogvar_.write(args.out[1], n, first, count, dlogvar);
        });
  }

 private:
  float scale_;
  Samples<T> mean_, dmean_;
  Samples<U> logvar_, dlogvar_;
};

/// Returns a kernel of two types: prediction and target.
template <template <class, class> class K, class A>
KernelCandidate pair_kernel(const KernelRequest& r, const A& attributes) {
  KernelCandidate c = candidate_for(r, "cpu:loss");
  c.refusal = refusal_of_layouts(r);
  with_float_type(r.in[0].dtype, [&](auto t) {
    with_float_type(r.in[1].dtype, [&](auto u) {
      c.make = [r, attributes] {
        return std::make_unique<K<decltype(t), decltype(u)>>(r, attributes);
      };
    });
  });
  if (!c.make)
    c.refusal = fmt::format("no loss of {} and {}", name_of(r.in[0].dtype), name_of(r.in[1].dtype));
  return c;
}

}  // namespace

void register_loss_kernels(KernelTable& table) {
  table.add<ops::PointwiseLoss>([](const KernelRequest& r, const ops::PointwiseLoss& op) {
    return pair_kernel<PointwiseLossKernel>(r, op.loss());
  });
  table.add<ops::PointwiseLossGrad>([](const KernelRequest& r, const ops::PointwiseLossGrad& op) {
    return pair_kernel<PointwiseLossGradKernel>(r, op.loss());
  });
  table.add<ops::GaussianKL>([](const KernelRequest& r, const ops::GaussianKL& op) {
    return pair_kernel<GaussianKLKernel>(r, op.scale());
  });
  table.add<ops::GaussianKLGrad>([](const KernelRequest& r, const ops::GaussianKLGrad& op) {
    return pair_kernel<GaussianKLGradKernel>(r, op.scale());
  });
}

}  // namespace tutti::backend
