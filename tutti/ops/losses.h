#pragma once
// Losses. Each makes an f32 scalar: scale * mean over the replica's batch; `scale` weighs one loss
// against another, because training minimises the sum of all losses. A loss ends a graph: the
// gradient of its own result is 1. Every gradient op is explicit and runs sample by sample; the
// batch size in a mean is StepInfo::batch.

#include "tutti/graph/graph.h"
#include "tutti/ops/rows.h"

namespace tutti {

/// The number W that a cross entropy is divided by.
enum class MeanOver : uint8_t {
  weights,  ///< PyTorch's reduction "mean"
  labels,   ///< the mean over samples and positions of the weighted losses, as in DeepCAM
  given,    ///< W is an input: ranks share the samples, and each holds a part of the labels
};

/// Cross entropy of a softmax over dimension 1, as in PyTorch: logits [N, K] with labels i32 [N],
/// or logits [N, K, spatial...] with labels i32 [N, spatial...].
///   loss = scale / W * sum_i ((1 - s) * w[y_i] * -log p_i[y_i] + s / K * sum_k w[k] * -log p_i[k])
/// with label smoothing s and class weights w (none = ones). W is the sum of the labels' weights,
/// sum_i w[y_i], the number of labels, or given, as mean_over says. Labels outside [0, K) are the
/// caller's bug; kernels clamp them.
struct SoftmaxCrossEntropyAttributes {
  float label_smoothing = 0;
  std::vector<float> class_weights;  ///< empty or K numbers
  float scale = 1;
  MeanOver mean_over = MeanOver::weights;
  std::string to_string() const;
};

/// (logits, labels, and W where it is given) -> (loss, W).
class SoftmaxCrossEntropy : public Op {
 public:
  explicit SoftmaxCrossEntropy(SoftmaxCrossEntropyAttributes attributes = {})
      : a_(std::move(attributes)) {}
  const SoftmaxCrossEntropyAttributes& loss() const { return a_; }
  std::string_view name() const override { return "softmax_cross_entropy"; }
  std::string attributes() const override { return a_.to_string(); }
  Walk walk(std::span<const ValueType>) const override { return Walk::reduce; }
  std::optional<Reach> reach(std::span<const ValueType> in, int axis, Rows out) const override;
  std::vector<ValueType> infer(std::span<const ValueType> in) const override;
  std::vector<Value> grad(const GradArgs& args) const override;

 private:
  SoftmaxCrossEntropyAttributes a_;
};

/// Sums the weights of i32 labels of samples, f32: W of the positions that this rank holds. Labels
/// outside of the weights are the caller's bug; kernels clamp them.
class LabelWeights : public Op {
 public:
  explicit LabelWeights(std::vector<float> weights) : weights_(std::move(weights)) {}
  const std::vector<float>& weights() const { return weights_; }
  std::string_view name() const override { return "label_weights"; }
  std::string attributes() const override;
  Walk walk(std::span<const ValueType>) const override { return Walk::reduce; }
  std::vector<ValueType> infer(std::span<const ValueType> in) const override;
  std::vector<Value> grad(const GradArgs& args) const override;  // none: labels are data

 private:
  std::vector<float> weights_;
};

/// (logits, labels, W) -> dlogits, of the logits' type.
class SoftmaxCrossEntropyGrad : public Op {
 public:
  explicit SoftmaxCrossEntropyGrad(SoftmaxCrossEntropyAttributes attributes)
      : a_(std::move(attributes)) {}
  const SoftmaxCrossEntropyAttributes& loss() const { return a_; }
  std::string_view name() const override { return "softmax_cross_entropy_grad"; }
  std::string attributes() const override { return a_.to_string(); }
  Walk walk(std::span<const ValueType>) const override { return Walk::per_sample; }
  std::vector<ValueType> infer(std::span<const ValueType> in) const override;

 private:
  SoftmaxCrossEntropyAttributes a_;
};

/// Losses of one element each, averaged over all elements. With x the prediction, t the target and
/// d = x - t:
///   mse d^2 | mae |d| | huber |d| < delta ? d^2 / 2 : delta * (|d| - delta / 2)
///   bce_with_logits (1 - t) * x + (1 + (pos_weight - 1) * t) * log(1 + exp(-x))
enum class PointwiseLossKind : uint8_t { mse, mae, huber, bce_with_logits };
std::string_view name_of(PointwiseLossKind kind);

struct PointwiseLossAttributes {
  PointwiseLossKind kind = PointwiseLossKind::mse;
  float delta = 1;       ///< huber
  float pos_weight = 1;  ///< bce_with_logits: weight of positive targets
  float scale = 1;
  std::string to_string() const;
};

/// (prediction, target) of one shape -> loss. The dtypes may differ.
class PointwiseLoss : public Op {
 public:
  explicit PointwiseLoss(PointwiseLossAttributes attributes) : a_(attributes) {}
  const PointwiseLossAttributes& loss() const { return a_; }
  std::string_view name() const override { return "pointwise_loss"; }
  std::string attributes() const override { return a_.to_string(); }
  Walk walk(std::span<const ValueType>) const override { return Walk::reduce; }
  std::optional<Reach> reach(std::span<const ValueType> in, int axis, Rows out) const override {
    return pointwise_reach(in, axis, out);
  }
  std::vector<ValueType> infer(std::span<const ValueType> in) const override;
  std::vector<Value> grad(const GradArgs& args) const override;

 private:
  PointwiseLossAttributes a_;
};

/// (prediction, target) -> gradient of the prediction, of its type.
class PointwiseLossGrad : public Op {
 public:
  explicit PointwiseLossGrad(PointwiseLossAttributes attributes) : a_(attributes) {}
  const PointwiseLossAttributes& loss() const { return a_; }
  std::string_view name() const override { return "pointwise_loss_grad"; }
  std::string attributes() const override { return a_.to_string(); }
  Walk walk(std::span<const ValueType>) const override { return Walk::per_sample; }
  std::vector<ValueType> infer(std::span<const ValueType> in) const override;

 private:
  PointwiseLossAttributes a_;
};

/// The divergence of N(mean, exp(logvar)) from N(0, 1): (mean, logvar) -> loss, summed over a
/// sample and averaged over the batch:
///   scale / N * sum (mean^2 + exp(logvar) - 1 - logvar) / 2
/// (Kingma and Welling 2014, appendix B).
class GaussianKL : public Op {
 public:
  explicit GaussianKL(float scale = 1) : scale_(scale) {}
  float scale() const { return scale_; }
  std::string_view name() const override { return "gaussian_kl"; }
  std::string attributes() const override;
  Walk walk(std::span<const ValueType>) const override { return Walk::reduce; }
  std::vector<ValueType> infer(std::span<const ValueType> in) const override;
  std::vector<Value> grad(const GradArgs& args) const override;

 private:
  float scale_;
};

/// (mean, logvar) -> (dmean, dlogvar).
class GaussianKLGrad : public Op {
 public:
  explicit GaussianKLGrad(float scale) : scale_(scale) {}
  float scale() const { return scale_; }
  std::string_view name() const override { return "gaussian_kl_grad"; }
  std::string attributes() const override;
  Walk walk(std::span<const ValueType>) const override { return Walk::per_sample; }
  std::vector<ValueType> infer(std::span<const ValueType> in) const override;

 private:
  float scale_;
};

}  // namespace tutti
