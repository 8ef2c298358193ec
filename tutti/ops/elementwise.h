#pragma once
// Elementwise arithmetic: y = a + b and y = a * b of two tensors of one shape and dtype, y = factor
// * x. Batched tensors are walked by sample, unbatched ones as a whole.

#include "tutti/graph/graph.h"
#include "tutti/ops/named_op.h"

namespace tutti::ops {

class Add : public RowByRow<NamedOp<"add", kAsBatched>> {
 public:
  std::vector<ValueType> infer(Types in) const override;
  std::vector<Value> grad(const GradArgs& args) const override;
  int in_place(int) const override { return 0; }
};

class Mul : public RowByRow<NamedOp<"mul", kAsBatched>> {
 public:
  std::vector<ValueType> infer(Types in) const override;
  std::vector<Value> grad(const GradArgs& args) const override;
  int in_place(int) const override { return 0; }
};

/// y = factor * x.
class Scale : public RowByRow<NamedOp<"scale", kAsBatched>> {
 public:
  explicit Scale(float factor) : factor_(factor) {}
  float factor() const { return factor_; }
  std::string attributes() const override;
  std::vector<ValueType> infer(Types in) const override;
  std::vector<Value> grad(const GradArgs& args) const override;
  int in_place(int) const override { return 0; }

 private:
  float factor_;
};

}  // namespace tutti::ops
