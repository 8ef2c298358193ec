#pragma once
// Group norm (Wu and He 2018): a sample's channels in groups, each normalised over its channels and
// all positions, so that nothing depends on the batch. x [N, C, ...], gamma and beta f32 [C]:
//   y = (x - mean) / sqrt(variance + epsilon) * gamma + beta
// Mean and variance, the population variance, are those of a sample's group. One group is the layer
// norm of convolutional networks; as many groups as channels are instance norm (Ulyanov et al.
// 2016). Backward computes the statistics again.

#include "tutti/graph/graph.h"
#include "tutti/ops/named_op.h"

namespace tutti::ops {

struct GroupNormAttributes {
  int64_t groups = 1;  ///< divides the channels
  float epsilon = 1e-5f;
  std::string to_string() const;
};

/// (x, gamma, beta) -> y of x's type.
class GroupNorm : public OpWith<"group_norm", Walk::per_sample, GroupNormAttributes> {
 public:
  using OpWith::OpWith;
  const GroupNormAttributes& norm() const { return a_; }
  std::vector<ValueType> infer(Types in) const override;
  std::vector<Value> grad(const GradArgs& args) const override;
};

/// (dy, x, gamma) -> (dx, dgamma, dbeta).
class GroupNormGrad : public OpWith<"group_norm_grad", Walk::reduce, GroupNormAttributes> {
 public:
  using OpWith::OpWith;
  const GroupNormAttributes& norm() const { return a_; }
  std::vector<ValueType> infer(Types in) const override;
  int in_place(int output) const override { return output == 0 ? 0 : -1; }
};

/// Normalises x with NAME.weight and NAME.bias, which start as ones and zeros. Throws ConfigError
/// naming the layer if the groups do not divide the channels.
Value group_norm(Graph& graph, const std::string& name, Value x, GroupNormAttributes attributes);

}  // namespace tutti::ops
