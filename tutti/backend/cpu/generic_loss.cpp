// Losses and their gradients: a sample at a time through tables of offsets, sums in double
// precision.

#include <algorithm>
#include <cmath>

#include "tutti/backend/cpu/generic.h"
#include "tutti/backend/cpu/sample.h"
#include "tutti/ops/losses.h"

namespace tutti {
namespace {

/// An operand of any layout: element k of sample n, in row-major order.
template <class T>
class Samples {
 public:
  explicit Samples(const TensorDesc& d)
      : samples(d.shape[0]), size(sample_size(d)), offsets_(sample_offsets(d)) {}
  int64_t samples, size;
  float get(const void* memory, int64_t n, int64_t k) const {
    return static_cast<float>(
        static_cast<const T*>(memory)[n * size + offsets_[static_cast<size_t>(k)]]);
  }
  int32_t label(const void* memory, int64_t n, int64_t k) const {
    return static_cast<const int32_t*>(memory)[n * size + offsets_[static_cast<size_t>(k)]];
  }
  void set(void* memory, int64_t n, int64_t k, float value) const {
    static_cast<T*>(memory)[n * size + offsets_[static_cast<size_t>(k)]] = static_cast<T>(value);
  }

 private:
  std::vector<int32_t> offsets_;
};

/// Adds up the threads' sums; false where another part does it.
template <size_t kSums>
bool totals(const FinishArgs& args, double (&sums)[kSums]) {
  std::fill_n(sums, kSums, 0.0);
  for (const void* state : args.states)
    for (size_t i = 0; i < kSums; ++i) sums[i] += static_cast<const double*>(state)[i];
  return args.part == 0;
}

template <class T>
class SoftmaxKernel : public Kernel {
 public:
  SoftmaxKernel(const KernelRequest& r, const SoftmaxCrossEntropyAttributes& a)
      : a_(a), x_(r.in[0]), labels_(r.in[1]), classes_(r.in[0].shape[1]),
        weights_(a.class_weights) {
    weights_.resize(static_cast<size_t>(classes_), 1.f);
  }
  size_t state_bytes() const override { return 2 * sizeof(double); }
  size_t workspace_bytes() const override { return static_cast<size_t>(classes_) * sizeof(float); }

  void run(const KernelArgs& args) override {
    auto* const sums = static_cast<double*>(args.state);
    if (args.first) sums[0] = sums[1] = 0;
    for_each_label(args, [&](int64_t, int64_t, int64_t y, const float* x, float log_sum) {
      const float s = a_.label_smoothing;
      float loss = (1 - s) * weight(y) * (log_sum - x[y]);
      if (s > 0)
        for (int64_t k = 0; k < classes_; ++k)
          loss += s / static_cast<float>(classes_) * weight(k) * (log_sum - x[k]);
      sums[0] += static_cast<double>(loss);
      sums[1] += a_.mean_over == MeanOver::labels ? 1 : static_cast<double>(weight(y));
    });
  }
  void finish(const FinishArgs& args) override {
    double sums[2];
    if (!totals(args, sums)) return;
    *static_cast<float*>(args.out[0]) =
        static_cast<float>(static_cast<double>(a_.scale) * sums[0] / sums[1]);
    *static_cast<float*>(args.out[1]) = static_cast<float>(sums[1]);
  }

 protected:
  float weight(int64_t k) const { return weights_[static_cast<size_t>(k)]; }

  /// f(sample, position, label, logits [classes] in the workspace, log of the sum of their
  /// exponentials).
  template <class F>
  void for_each_label(const KernelArgs& args, F f) const {
    auto* const x = static_cast<float*>(args.workspace);
    for (int64_t n = 0; n < labels_.samples; ++n)
      for (int64_t i = 0; i < labels_.size; ++i) {
        float top = -INFINITY, sum = 0;
        for (int64_t k = 0; k < classes_; ++k) {
          x[k] = x_.get(args.in[0], n, k * labels_.size + i);
          top = std::max(top, x[k]);
        }
        for (int64_t k = 0; k < classes_; ++k) sum += std::exp(x[k] - top);
        const int64_t y = std::clamp<int64_t>(labels_.label(args.in[1], n, i), 0, classes_ - 1);
        f(n, i, y, x, top + std::log(sum));
      }
  }

  SoftmaxCrossEntropyAttributes a_;
  Samples<T> x_;
  Samples<int32_t> labels_;
  int64_t classes_;
  std::vector<float> weights_;
};

template <class T>
class SoftmaxGradKernel final : public SoftmaxKernel<T> {
 public:
  SoftmaxGradKernel(const KernelRequest& r, const SoftmaxCrossEntropyAttributes& a)
      : SoftmaxKernel<T>(r, a), dx_(r.out[0]) {}
  size_t state_bytes() const override { return 0; }

  void run(const KernelArgs& args) override {
    const float s = this->a_.label_smoothing, even = s / static_cast<float>(this->classes_);
    const float factor = this->a_.scale / *static_cast<const float*>(args.in[2]);
    float all = 0;
    for (const float w : this->weights_) all += even * w;
    this->for_each_label(args, [&](int64_t n, int64_t i, int64_t y, const float* x, float log_sum) {
      const float total = (1 - s) * this->weight(y) + all;
      for (int64_t k = 0; k < this->classes_; ++k) {
        const float target = even * this->weight(k) + (k == y ? (1 - s) * this->weight(y) : 0.f);
        dx_.set(args.out[0], n, k * this->labels_.size + i,
                factor * (total * std::exp(x[k] - log_sum) - target));
      }
    });
  }

 private:
  Samples<T> dx_;
};

float loss_of(const PointwiseLossAttributes& a, float x, float t) {
  const float d = x - t;
  switch (a.kind) {
    case PointwiseLossKind::mse: return d * d;
    case PointwiseLossKind::mae: return std::abs(d);
    case PointwiseLossKind::huber:
      return std::abs(d) < a.delta ? 0.5f * d * d : a.delta * (std::abs(d) - 0.5f * a.delta);
    case PointwiseLossKind::bce_with_logits:
      return (1 - t) * x + (1 + (a.pos_weight - 1) * t) *
                               (std::log1p(std::exp(-std::abs(x))) + std::max(-x, 0.f));
  }
  return 0;
}

float slope_of(const PointwiseLossAttributes& a, float x, float t) {
  const float d = x - t;
  switch (a.kind) {
    case PointwiseLossKind::mse: return 2 * d;
    case PointwiseLossKind::mae: return d > 0 ? 1.f : d < 0 ? -1.f : 0.f;
    case PointwiseLossKind::huber: return d < -a.delta ? -a.delta : d > a.delta ? a.delta : d;
    case PointwiseLossKind::bce_with_logits:
      return 1 - t - (1 + (a.pos_weight - 1) * t) / (1 + std::exp(x));
  }
  return 0;
}

/// Elements over which a mean is taken.
double batch_elements(const StepInfo& step, int64_t sample_size) {
  return static_cast<double>(step.batch) * static_cast<double>(sample_size);
}

template <class T, class U>
class PointwiseLossKernel final : public Kernel {
 public:
  PointwiseLossKernel(const KernelRequest& r, const PointwiseLossAttributes& a)
      : a_(a), x_(r.in[0]), t_(r.in[1]) {}
  size_t state_bytes() const override { return sizeof(double); }
  void run(const KernelArgs& args) override {
    auto* const sum = static_cast<double*>(args.state);
    if (args.first) *sum = 0;
    for (int64_t n = 0; n < x_.samples; ++n)
      for (int64_t k = 0; k < x_.size; ++k)
        *sum +=
            static_cast<double>(loss_of(a_, x_.get(args.in[0], n, k), t_.get(args.in[1], n, k)));
  }
  void finish(const FinishArgs& args) override {
    double sums[1];
    if (totals(args, sums))
      *static_cast<float*>(args.out[0]) = static_cast<float>(
          static_cast<double>(a_.scale) * sums[0] / batch_elements(*args.step, x_.size));
  }

 private:
  PointwiseLossAttributes a_;
  Samples<T> x_;
  Samples<U> t_;
};

template <class T, class U>
class PointwiseLossGradKernel final : public Kernel {
 public:
  PointwiseLossGradKernel(const KernelRequest& r, const PointwiseLossAttributes& a)
      : a_(a), x_(r.in[0]), dx_(r.out[0]), t_(r.in[1]) {}
  void run(const KernelArgs& args) override {
    const auto factor =
        static_cast<float>(static_cast<double>(a_.scale) / batch_elements(*args.step, x_.size));
    for (int64_t n = 0; n < x_.samples; ++n)
      for (int64_t k = 0; k < x_.size; ++k)
        dx_.set(args.out[0], n, k,
                factor * slope_of(a_, x_.get(args.in[0], n, k), t_.get(args.in[1], n, k)));
  }

 private:
  PointwiseLossAttributes a_;
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
    for (int64_t n = 0; n < mean_.samples; ++n)
      for (int64_t k = 0; k < mean_.size; ++k) {
        const float mean = mean_.get(args.in[0], n, k), logvar = logvar_.get(args.in[1], n, k);
        *sum += static_cast<double>(0.5f * (mean * mean + std::exp(logvar) - 1 - logvar));
      }
  }
  void finish(const FinishArgs& args) override {
    double sums[1];
    if (totals(args, sums))
      *static_cast<float*>(args.out[0]) = static_cast<float>(static_cast<double>(scale_) * sums[0] /
                                                             static_cast<double>(args.step->batch));
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
    for (int64_t n = 0; n < mean_.samples; ++n)
      for (int64_t k = 0; k < mean_.size; ++k) {
        dmean_.set(args.out[0], n, k, factor * mean_.get(args.in[0], n, k));
        dlogvar_.set(args.out[1], n, k,
                     factor * 0.5f * (std::exp(logvar_.get(args.in[1], n, k)) - 1));
      }
  }

 private:
  float scale_;
  Samples<T> mean_, dmean_;
  Samples<U> logvar_, dlogvar_;
};

/// Kernels of two types: prediction and target.
template <template <class, class> class K, class A>
bool add_pair(const KernelRequest& r, std::vector<KernelCandidate>& candidates,
              const A& attributes) {
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
  candidates.push_back(std::move(c));
  return true;
}

template <template <class> class K>
bool add_softmax(const KernelRequest& r, std::vector<KernelCandidate>& candidates,
                 const SoftmaxCrossEntropyAttributes& a) {
  KernelCandidate c = candidate_for(r, "cpu:loss");
  c.refusal = refusal_of_layouts(r);
  if (!with_float_type(r.in[0].dtype, [&](auto t) {
        c.make = [r, a] { return std::make_unique<K<decltype(t)>>(r, a); };
      }))
    c.refusal = fmt::format("no softmax of {}", name_of(r.in[0].dtype));
  candidates.push_back(std::move(c));
  return true;
}

}  // namespace

bool append_loss_candidates(const KernelRequest& r, std::vector<KernelCandidate>& candidates) {
  if (const auto* op = dynamic_cast<const SoftmaxCrossEntropy*>(r.op))
    return add_softmax<SoftmaxKernel>(r, candidates, op->loss());
  if (const auto* op = dynamic_cast<const SoftmaxCrossEntropyGrad*>(r.op))
    return add_softmax<SoftmaxGradKernel>(r, candidates, op->loss());
  if (const auto* op = dynamic_cast<const PointwiseLoss*>(r.op))
    return add_pair<PointwiseLossKernel>(r, candidates, op->loss());
  if (const auto* op = dynamic_cast<const PointwiseLossGrad*>(r.op))
    return add_pair<PointwiseLossGradKernel>(r, candidates, op->loss());
  if (const auto* op = dynamic_cast<const GaussianKL*>(r.op))
    return add_pair<GaussianKLKernel>(r, candidates, op->scale());
  if (const auto* op = dynamic_cast<const GaussianKLGrad*>(r.op))
    return add_pair<GaussianKLGradKernel>(r, candidates, op->scale());
  return false;
}

}  // namespace tutti
