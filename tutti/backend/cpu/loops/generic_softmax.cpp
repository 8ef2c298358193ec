// Softmax cross-entropy and its gradient. Lanes are labels: sixteen at once, which are positions of
// one sample or different samples.

#include <algorithm>
#include <limits>

#include "tutti/backend/cpu/kernel/kernel_table.h"
#include "tutti/backend/cpu/kernel/sample.h"
#include "tutti/backend/cpu/simd/simd_math.h"
#include "tutti/ops/losses.h"

namespace tutti::backend {
namespace {

using simd::AllLanes, simd::Floats, simd::kLanes, simd::SomeLanes, simd::Words;

/// Up to sixteen labels, and the places of their logits.
struct Labels {
  int count = 0;
  bool run = false;         ///< logits of one class are neighbours
  int64_t at[kLanes];       ///< places of class 0, in elements of x
  int32_t label[kLanes]{};  ///< within the classes
};

/// Reads x [N, classes, positions...] of any layout, and labels [N, positions...].
template <class T>
class Logits {
 public:
  Logits(const TensorDesc& x, const TensorDesc& labels)
      : classes_(x.shape[1]), positions_(sample_size(labels)), sample_(sample_size(x)),
        count_(labels.elements()), plain_(x.layout.is_plain() && labels.layout.is_plain()),
        class_terms_(x.layout.terms(x.shape, 1)), offsets_(x), label_offsets_(labels) {}
  int64_t classes() const { return classes_; }

  /// Calls f(labels) for all labels of a tile, sixteen at a time.
  template <class F>
  void for_each(const void* labels, F f) const {
    for (int64_t i = 0; i < count_; i += kLanes) f(these(static_cast<const int32_t*>(labels), i));
  }
  /// Loads the logits of class k.
  Floats load(const void* memory, const Labels& labels, int64_t k) const {
    const T* const x = static_cast<const T*>(memory) + class_terms_[static_cast<size_t>(k)];
    if (labels.run)
      return labels.count == kLanes ? simd::load(x + labels.at[0], AllLanes{})
                                    : simd::load(x + labels.at[0], SomeLanes{labels.count});
    float values[kLanes] = {};
    for (int i = 0; i < labels.count; ++i) values[i] = static_cast<float>(x[labels.at[i]]);
    return simd::load(values, AllLanes{});
  }
  void store(void* memory, const Labels& labels, int64_t k, Floats v) const {
    T* const x = static_cast<T*>(memory) + class_terms_[static_cast<size_t>(k)];
    if (labels.run && labels.count == kLanes) return simd::store(x + labels.at[0], v, AllLanes{});
    float values[kLanes];
    simd::store(values, v, AllLanes{});
    for (int i = 0; i < labels.count; ++i) x[labels.at[i]] = static_cast<T>(values[i]);
  }

  /// Returns labels from `first` of the tile on.
  Labels these(const int32_t* labels, int64_t first) const {
    Labels found;
    found.count = static_cast<int>(std::min<int64_t>(kLanes, count_ - first));
    const int64_t position = first % positions_;
    found.run = plain_ && position + found.count <= positions_;
    if (found.run) {
      const int64_t start = first / positions_ * sample_ + position;
      for (int i = 0; i < found.count; ++i) {
        found.at[i] = start + i;
        found.label[i] = inside(labels[first + i]);
      }
      return found;
    }
    int64_t at[kLanes];
    for (int done = 0; done < found.count;) {
      const int64_t n = (first + done) / positions_, i = (first + done) % positions_;
      const int64_t some = std::min<int64_t>(found.count - done, positions_ - i);
      offsets_.read(i, some, found.at + done);
      label_offsets_.read(i, some, at);
      for (int64_t k = 0; k < some; ++k, ++done) {
        found.at[done] += n * sample_;
        found.label[done] = inside(labels[n * positions_ + at[k]]);
      }
    }
    return found;
  }

 private:
  int32_t inside(int32_t label) const {
    return std::clamp(label, 0, static_cast<int32_t>(classes_ - 1));
  }

  int64_t classes_, positions_, sample_, count_;
  bool plain_;  ///< whether logits and labels are plain
  std::vector<int64_t> class_terms_;
  SampleOffsets offsets_, label_offsets_;
};

template <class T>
class SoftmaxKernel : public Kernel {
 public:
  SoftmaxKernel(const KernelRequest& r, const ops::SoftmaxCrossEntropyAttributes& a)
      : a_(a), logits_(r.in[0], r.in[1]), weights_(a.class_weights) {
    weights_.resize(static_cast<size_t>(logits_.classes()), 1.f);
  }
  size_t state_bytes() const override { return 2 * sizeof(double); }
  size_t workspace_bytes() const override {
    return static_cast<size_t>(logits_.classes()) * sizeof(Floats);
  }

  void run(const KernelArgs& args) override {
    auto* const sums = static_cast<double*>(args.state);
    if (args.first) sums[0] = sums[1] = 0;
    const float s = a_.label_smoothing, even = s / static_cast<float>(logits_.classes());
    auto* const x = static_cast<float*>(args.workspace);
    logits_.for_each(args.in[1], [&](const Labels& labels) {
      const Floats log_sum = log_sum_of(args, labels);
      Floats smooth{};
      if (s > 0)
        for (int64_t k = 0; k < logits_.classes(); ++k)
          smooth += even * weight(k) * (log_sum - simd::load(x + k * kLanes, AllLanes{}));
      float top[kLanes], extra[kLanes];
      simd::store(top, log_sum, AllLanes{});
      simd::store(extra, smooth, AllLanes{});
      for (int i = 0; i < labels.count; ++i) {
        const int32_t y = labels.label[i];
        const float loss = (1 - s) * weight(y) * (top[i] - x[y * kLanes + i]) + extra[i];
        sums[0] += static_cast<double>(loss);
        sums[1] += a_.mean_over == ops::MeanOver::labels ? 1 : static_cast<double>(weight(y));
      }
    });
  }
  void finish(const FinishArgs& args) override {
    if (args.thread != 0) return;
    double loss = 0, weight = 0;
    for (const void* state : args.states) {
      loss += static_cast<const double*>(state)[0];
      weight += static_cast<const double*>(state)[1];
    }
    if (a_.mean_over == ops::MeanOver::given)
      weight = static_cast<double>(*static_cast<const float*>(args.in[2]));
    *static_cast<float*>(args.out[0]) =
        static_cast<float>(static_cast<double>(a_.scale) * loss / weight);
    *static_cast<float*>(args.out[1]) = static_cast<float>(weight);
  }

 protected:
  float weight(int64_t k) const { return weights_[static_cast<size_t>(k)]; }

  /// Returns the logarithm of the sum of exponentials; copies the logits to the workspace,
  /// [classes, sixteen].
  Floats log_sum_of(const KernelArgs& args, const Labels& labels) const {
    auto* const x = static_cast<float*>(args.workspace);
    Floats top = simd::splat(-std::numeric_limits<float>::infinity()), sum{};
    for (int64_t k = 0; k < logits_.classes(); ++k) {
      const Floats v = logits_.load(args.in[0], labels, k);
      simd::store(x + k * kLanes, v, AllLanes{});
      top = simd::greater_of(v, top);
    }
    for (int64_t k = 0; k < logits_.classes(); ++k)
      sum += simd::exp(simd::load(x + k * kLanes, AllLanes{}) - top);
    return top + simd::log(sum);
  }

  ops::SoftmaxCrossEntropyAttributes a_;
  Logits<T> logits_;
  std::vector<float> weights_;
};

template <class T>
class SoftmaxGradKernel final : public SoftmaxKernel<T> {
 public:
  SoftmaxGradKernel(const KernelRequest& r, const ops::SoftmaxCrossEntropyAttributes& a)
      : SoftmaxKernel<T>(r, a), same_layout_(r.in[0].layout == r.out[0].layout),
        dx_(r.out[0], r.in[1]) {}
  size_t state_bytes() const override { return 0; }

  void run(const KernelArgs& args) override {
    const int64_t classes = this->logits_.classes();
    const float s = this->a_.label_smoothing, even = s / static_cast<float>(classes);
    const float factor = this->a_.scale / *static_cast<const float*>(args.in[2]);
    const auto* const x = static_cast<const float*>(args.workspace);
    float all = 0;
    for (const float w : this->weights_) all += even * w;
    const auto gradient = [&](const Labels& labels, const Labels& places) {
      const Floats log_sum = this->log_sum_of(args, labels);
      float of_label[kLanes] = {};
      for (int i = 0; i < labels.count; ++i) of_label[i] = (1 - s) * this->weight(labels.label[i]);
      const Floats own = simd::load(of_label, AllLanes{}), total = own + all;
      const Words label = simd::load_as<Words>(labels.label);
      for (int64_t k = 0; k < classes; ++k) {
        const Floats p = simd::exp(simd::load(x + k * kLanes, AllLanes{}) - log_sum);
        const auto here = label == Words{} + static_cast<uint32_t>(k);
        const Floats target = simd::select(here, own, Floats{}) + even * this->weight(k);
        dx_.store(args.out[0], places, k, factor * (total * p - target));
      }
    };
    if (same_layout_)
      return this->logits_.for_each(args.in[1],
                                    [&](const Labels& labels) { gradient(labels, labels); });
    int64_t first = 0;
    this->logits_.for_each(args.in[1], [&](const Labels& labels) {
      gradient(labels, dx_.these(static_cast<const int32_t*>(args.in[1]), first));
      first += kLanes;
    });
  }

 private:
  bool same_layout_;  ///< logits and gradients then lie at the same places
  Logits<T> dx_;
};

/// Reads labels in the order of memory, whatever the layout.
class LabelWeightsKernel final : public Kernel {
 public:
  LabelWeightsKernel(const KernelRequest& r, const ops::LabelWeights& op)
      : count_(r.in[0].elements()), weights_(op.weights()) {}
  size_t state_bytes() const override { return sizeof(double); }
  void run(const KernelArgs& args) override {
    auto* const sum = static_cast<double*>(args.state);
    if (args.first) *sum = 0;
    const auto* const labels = static_cast<const int32_t*>(args.in[0]);
    const auto last = static_cast<int32_t>(weights_.size()) - 1;
    for (int64_t i = 0; i < count_; ++i)
      *sum += static_cast<double>(weights_[static_cast<size_t>(std::clamp(labels[i], 0, last))]);
  }
  void finish(const FinishArgs& args) override {
    if (args.thread != 0) return;
    double all = 0;
    for (const void* state : args.states) all += *static_cast<const double*>(state);
    *static_cast<float*>(args.out[0]) = static_cast<float>(all);
  }

 private:
  int64_t count_;
  std::vector<float> weights_;
};

KernelCandidate label_weights_kernel(const KernelRequest& r, const ops::LabelWeights& op) {
  KernelCandidate c = candidate_for(r, "cpu:loss");
  if (r.in[0].bytes() != static_cast<size_t>(r.in[0].elements()) * sizeof(int32_t))
    c.refusal = "padding between labels";
  c.make = [r, op] { return std::make_unique<LabelWeightsKernel>(r, op); };
  return c;
}

template <template <class> class K, class O>
KernelCandidate softmax_kernel(const KernelRequest& r, const O& op) {
  KernelCandidate c = candidate_for(r, "cpu:loss");
  c.refusal = refusal_of_layouts(r);
  choose_kernel<K>(c, r.in[0].dtype, "softmax", r, op.loss());
  return c;
}

}  // namespace

void register_softmax_kernels(KernelTable& table) {
  table.add<ops::SoftmaxCrossEntropy>(softmax_kernel<SoftmaxKernel, ops::SoftmaxCrossEntropy>);
  table.add<ops::SoftmaxCrossEntropyGrad>(
      softmax_kernel<SoftmaxGradKernel, ops::SoftmaxCrossEntropyGrad>);
  table.add<ops::LabelWeights>(label_weights_kernel);
}

}  // namespace tutti::backend
