#pragma once
// Losses. Each makes an f32 scalar: scale * mean over the replica's batch; `scale` weighs one loss
// against another, because training minimises the sum of all losses. A loss ends a graph: the
// gradient of its own result is 1. Every gradient op is explicit and runs sample by sample; the
// batch size in a mean is StepInfo::batch.

#include "tutti/graph/graph.h"
#include "tutti/ops/named_op.h"

namespace tutti::ops {

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
class SoftmaxCrossEntropy
    : public OpWith<"softmax_cross_entropy", Walk::reduce, SoftmaxCrossEntropyAttributes> {
 public:
  using OpWith::OpWith;
  const SoftmaxCrossEntropyAttributes& loss() const { return a_; }
  std::optional<Reach> reach(Types in, int axis, Rows out) const override;
  std::vector<ValueType> infer(Types in) const override;
  std::vector<Value> grad(const GradArgs& args) const override;
};

/// Sums the weights of i32 labels of samples, f32: W of the positions that this rank holds. Labels
/// outside of the weights are the caller's bug; kernels clamp them.
class LabelWeights : public WithoutGradient<NamedOp<"label_weights", Walk::reduce>> {
 public:
  explicit LabelWeights(std::vector<float> weights) : weights_(std::move(weights)) {}
  const std::vector<float>& weights() const { return weights_; }
  std::string attributes() const override;
  std::vector<ValueType> infer(Types in) const override;

 private:
  std::vector<float> weights_;
};

/// (logits, labels, W) -> dlogits, of the logits' type.
class SoftmaxCrossEntropyGrad
    : public OpWith<"softmax_cross_entropy_grad", Walk::per_sample, SoftmaxCrossEntropyAttributes> {
 public:
  using OpWith::OpWith;
  const SoftmaxCrossEntropyAttributes& loss() const { return a_; }
  std::vector<ValueType> infer(Types in) const override;
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
class PointwiseLoss
    : public RowByRow<OpWith<"pointwise_loss", Walk::reduce, PointwiseLossAttributes>> {
 public:
  using RowByRow::RowByRow;
  const PointwiseLossAttributes& loss() const { return a_; }
  std::vector<ValueType> infer(Types in) const override;
  std::vector<Value> grad(const GradArgs& args) const override;
};

/// (prediction, target) -> gradient of the prediction, of its type.
class PointwiseLossGrad
    : public OpWith<"pointwise_loss_grad", Walk::per_sample, PointwiseLossAttributes> {
 public:
  using OpWith::OpWith;
  const PointwiseLossAttributes& loss() const { return a_; }
  std::vector<ValueType> infer(Types in) const override;
};

/// The divergence of N(mean, exp(logvar)) from N(0, 1): (mean, logvar) -> loss, summed over a
/// sample and averaged over the batch:
///   scale / N * sum (mean^2 + exp(logvar) - 1 - logvar) / 2
/// (Kingma and Welling 2014, appendix B).
class GaussianKL : public NamedOp<"gaussian_kl", Walk::reduce> {
 public:
  explicit GaussianKL(float scale = 1) : scale_(scale) {}
  float scale() const { return scale_; }
  std::string attributes() const override;
  std::vector<ValueType> infer(Types in) const override;
  std::vector<Value> grad(const GradArgs& args) const override;

 private:
  float scale_;
};

/// (mean, logvar) -> (dmean, dlogvar).
class GaussianKLGrad : public NamedOp<"gaussian_kl_grad", Walk::per_sample> {
 public:
  explicit GaussianKLGrad(float scale) : scale_(scale) {}
  float scale() const { return scale_; }
  std::string attributes() const override;
  std::vector<ValueType> infer(Types in) const override;

 private:
  float scale_;
};

}  // namespace tutti::ops
