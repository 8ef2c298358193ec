#pragma once
// Fully connected layer. x [N, ...] is flattened from dimension 1 on in logical order to [N, F]; w
// [K, F], bias [K], y [N, K]: y = x * w^T + bias.

#include "tutti/graph/graph.h"
#include "tutti/ops/named_op.h"

namespace tutti::ops {

/// Inputs x, w, [bias]. y has `output` as dtype: f32 by default, because the layer usually feeds a
/// loss.
class Dense : public NamedOp<"dense", Walk::per_sample> {
 public:
  explicit Dense(bool bias, DType output = DType::f32) : bias_(bias), output_(output) {}
  bool bias() const { return bias_; }
  DType output() const { return output_; }
  std::string attributes() const override;
  std::vector<ValueType> infer(Types in) const override;
  std::vector<Value> grad(const GradArgs& args) const override;
  double flop(Types in, Types out) const override;

 private:
  bool bias_;
  DType output_;
};

/// (dy [N, K], w [K, F]) -> dx with x's shape (dimension 0 from dy) and dtype: dx = dy * w.
class DenseBackwardData : public NamedOp<"dense_backward_data", Walk::per_sample> {
 public:
  DenseBackwardData(Shape x_shape, DType x_dtype) : x_shape_(x_shape), x_dtype_(x_dtype) {}
  const Shape& x_shape() const { return x_shape_; }
  std::string attributes() const override;
  std::vector<ValueType> infer(Types in) const override;
  double flop(Types in, Types out) const override;

 private:
  Shape x_shape_;
  DType x_dtype_;
};

/// (x [N, ...], dy [N, K]) -> dw [K, F], f32: dw = dy^T * x, a sum over the batch.
class DenseBackwardWeights : public NamedOp<"dense_backward_weights", Walk::reduce> {
 public:
  std::vector<ValueType> infer(Types in) const override;
  double flop(Types in, Types out) const override;
};

}  // namespace tutti::ops
