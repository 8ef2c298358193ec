#pragma once
// Normalisation over the channels of each position: layer norm (Ba et al. 2016) and RMS norm (Zhang
// and Sennrich 2019). x [N, C, ...], gamma and beta f32 [C]:
//   layer  y = (x - mean) / sqrt(variance + epsilon) * gamma + beta
//   rms    y = x / sqrt(mean of x^2 + epsilon) * gamma
// Means are over dimension 1; the variance is the population variance. A sample's positions are
// independent of each other, so only the gradients of gamma and beta are summed over the batch.
// Backward computes the statistics again: a position's channels are in cache.

#include "tutti/graph/graph.h"
#include "tutti/ops/named_op.h"

namespace tutti::ops {

enum class LayerNormKind : uint8_t { layer, rms };
std::string_view name_of(LayerNormKind kind);

struct LayerNormAttributes {
  LayerNormKind kind = LayerNormKind::layer;
  float epsilon = 1e-5f;
  bool has_beta() const { return kind == LayerNormKind::layer; }
  std::string to_string() const;
};

/// (x, gamma, beta of a layer norm) -> y of x's type.
class LayerNorm : public RowByRow<OpWith<"layer_norm", Walk::per_sample, LayerNormAttributes>> {
 public:
  using RowByRow::RowByRow;
  const LayerNormAttributes& norm() const { return a_; }
  std::vector<ValueType> infer(Types in) const override;
  std::vector<Value> grad(const GradArgs& args) const override;
};

/// (dy, x, gamma) -> (dx, dgamma, dbeta of a layer norm).
class LayerNormGrad : public OpWith<"layer_norm_grad", Walk::reduce, LayerNormAttributes> {
 public:
  using OpWith::OpWith;
  const LayerNormAttributes& norm() const { return a_; }
  std::vector<ValueType> infer(Types in) const override;
  int in_place(int output) const override { return output == 0 ? 0 : -1; }
};

}  // namespace tutti::ops
