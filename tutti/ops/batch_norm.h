#pragma once
// Batch normalisation over samples and positions (Ioffe and Szegedy 2015), with residual addition
// and ReLU folded in, split at its reductions so that everything between two reductions can run
// tile by tile:
//   forward    stats:       mean, inv_std of y
//              apply:       z = relu(gamma * (y - mean) * inv_std + beta + residual)
//   backward   grad_reduce: g = (dz + dz2) * [z > 0], dbeta = sum g, dgamma = sum g * xhat
//              grad_apply:  dy = gamma * inv_std * (g - dbeta / M - xhat * dgamma / M)
//                           dy = gamma * inv_std * g, where the statistics are constants
// with xhat = (y - mean) * inv_std and M = samples x positions. g is also the residual's gradient.
// Statistics are f32 whatever the type of y; variances are biased in the normalisation and unbiased
// in the running average, as everywhere.

#include <optional>
#include <string>

#include "tutti/graph/graph.h"
#include "tutti/ops/named_op.h"

namespace tutti::ops {

/// Tells which statistics training normalises by. The running averages follow
/// running = (1 - momentum) * running + momentum * batch value.
struct NormStatistics {
  float epsilon = 1e-5f, momentum = 0.1f;
  /// Normalise by the running averages, which include this batch, instead of by the batch's own
  /// statistics. The gradient treats them as constants.
  bool running = false;
  /// True where the averages do not change; training then normalises by them as evaluation does.
  bool frozen() const { return running && momentum == 0; }
  std::string to_string() const;
};

/// (y, running_mean, running_var) -> (mean [C], inv_std [C]), f32; updates the running averages.
/// BatchNormApply's gradient rule covers it.
class BatchNormStats
    : public WithoutGradient<RowByRow<OpWith<"batch_norm_stats", Walk::reduce, NormStatistics>>> {
 public:
  using WithoutGradient::WithoutGradient;
  const NormStatistics& statistics() const { return a_; }
  std::vector<ValueType> infer(Types in) const override;
  bool mutates(int input) const override { return input > 0; }
};

/// (y, mean, inv_std, gamma, beta, [residual]) -> z.
class BatchNormApply : public RowByRow<NamedOp<"batch_norm_apply", Walk::per_sample>> {
 public:
  BatchNormApply(bool relu, bool residual) : relu_(relu), residual_(residual) {}
  bool relu() const { return relu_; }
  bool residual() const { return residual_; }
  std::string attributes() const override;
  std::vector<ValueType> infer(Types in) const override;
  std::vector<Value> grad(const GradArgs& args) const override;

 private:
  bool relu_, residual_;
};

/// (dz, y, mean, inv_std, [z if relu], [dz2 if two]) -> (g like dz, dgamma [C], dbeta [C]). With
/// `epsilon`, which comes from a BatchNormInference, the variance takes the place of inv_std.
class BatchNormGradReduce : public NamedOp<"batch_norm_grad_reduce", Walk::reduce> {
 public:
  BatchNormGradReduce(bool relu, bool two, std::optional<float> epsilon = {})
      : relu_(relu), two_(two), epsilon_(epsilon) {}
  bool relu() const { return relu_; }
  bool two() const { return two_; }
  std::optional<float> epsilon() const { return epsilon_; }
  std::string attributes() const override;
  std::vector<ValueType> infer(Types in) const override;
  int in_place(int output) const override { return output == 0 ? 0 : -1; }

 private:
  bool relu_, two_;
  std::optional<float> epsilon_;
};

/// (g, y, mean, inv_std, gamma, dgamma, dbeta) -> dy, where the statistics depend on the batch.
class BatchNormGradApply : public NamedOp<"batch_norm_grad_apply", Walk::per_sample> {
 public:
  std::vector<ValueType> infer(Types in) const override;
  int in_place(int output) const override { return output == 0 ? 0 : -1; }
};

/// (g, inv_std, gamma) -> dy, where the statistics are constants. With `epsilon`, which comes from
/// a BatchNormInference, the variance takes the place of inv_std.
class BatchNormGradScale : public NamedOp<"batch_norm_grad_scale", Walk::per_sample> {
 public:
  explicit BatchNormGradScale(std::optional<float> epsilon = {}) : epsilon_(epsilon) {}
  std::optional<float> epsilon() const { return epsilon_; }
  std::string attributes() const override;
  std::vector<ValueType> infer(Types in) const override;
  int in_place(int output) const override { return output == 0 ? 0 : -1; }

 private:
  std::optional<float> epsilon_;
};

/// Used in evaluation, and in training where the statistics are frozen: (y, running_mean,
/// running_var, gamma, beta, [residual]) -> z.
class BatchNormInference : public RowByRow<NamedOp<"batch_norm_inference", Walk::per_sample>> {
 public:
  BatchNormInference(bool relu, bool residual, float epsilon = 1e-5f)
      : relu_(relu), residual_(residual), epsilon_(epsilon) {}
  bool relu() const { return relu_; }
  bool residual() const { return residual_; }
  float epsilon() const { return epsilon_; }
  std::string attributes() const override;
  std::vector<ValueType> infer(Types in) const override;
  std::vector<Value> grad(const GradArgs& args) const override;

 private:
  bool relu_, residual_;
  float epsilon_;
};

}  // namespace tutti::ops
