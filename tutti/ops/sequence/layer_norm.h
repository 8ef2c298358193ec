#pragma once
// Normalisation over the channels of each position: layer norm (Ba et al. 2016) and RMS norm (Zhang
// and Sennrich 2019). x [N, C, ...], gamma and beta f32 [C]:
//   layer  y = (x - mean) / sqrt(variance + epsilon) * gamma + beta
//   rms    y = x / sqrt(mean of x^2 + epsilon) * gamma
// Means are over dimension 1; the variance is the population variance. A sample's positions are
// independent of each other, so only the gradients of gamma and beta are summed over the batch.
// Backward computes the statistics again: a position's channels are in cache.

#include "tutti/graph/graph.h"
#include "tutti/ops/rows.h"

namespace tutti {

enum class LayerNormKind : uint8_t { layer, rms };
std::string_view name_of(LayerNormKind kind);

struct LayerNormAttributes {
  LayerNormKind kind = LayerNormKind::layer;
  float epsilon = 1e-5f;
  bool has_beta() const { return kind == LayerNormKind::layer; }
  std::string to_string() const;
};

/// (x, gamma, beta of a layer norm) -> y of x's type.
class LayerNorm : public Op {
 public:
  explicit LayerNorm(LayerNormAttributes attributes = {}) : a_(attributes) {}
  const LayerNormAttributes& norm() const { return a_; }
  std::string_view name() const override { return "layer_norm"; }
  std::string attributes() const override { return a_.to_string(); }
  Walk walk(std::span<const ValueType>) const override { return Walk::per_sample; }
  std::optional<Reach> reach(std::span<const ValueType> in, int axis, Rows out) const override {
    return pointwise_reach(in, axis, out);
  }
  std::vector<ValueType> infer(std::span<const ValueType> in) const override;
  std::vector<Value> grad(const GradArgs& args) const override;

 private:
  LayerNormAttributes a_;
};

/// (dy, x, gamma) -> (dx, dgamma, dbeta of a layer norm).
class LayerNormGrad : public Op {
 public:
  explicit LayerNormGrad(LayerNormAttributes attributes) : a_(attributes) {}
  const LayerNormAttributes& norm() const { return a_; }
  std::string_view name() const override { return "layer_norm_grad"; }
  std::string attributes() const override { return a_.to_string(); }
  Walk walk(std::span<const ValueType>) const override { return Walk::reduce; }
  std::vector<ValueType> infer(std::span<const ValueType> in) const override;
  int in_place(int output) const override { return output == 0 ? 0 : -1; }

 private:
  LayerNormAttributes a_;
};

}  // namespace tutti
