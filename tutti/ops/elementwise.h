#pragma once
// Elementwise arithmetic: y = a + b and y = a * b of two tensors of one shape and dtype, y = factor
// * x. Batched tensors are walked by sample, unbatched ones as a whole.

#include "tutti/graph/graph.h"
#include "tutti/ops/rows.h"

namespace tutti {

class Add : public Op {
 public:
  std::string_view name() const override { return "add"; }
  Walk walk(std::span<const ValueType> in) const override {
    return in[0].batched ? Walk::per_sample : Walk::whole;
  }
  std::optional<Reach> reach(std::span<const ValueType> in, int axis, Rows out) const override {
    return pointwise_reach(in, axis, out);
  }
  std::vector<ValueType> infer(std::span<const ValueType> in) const override;
  std::vector<Value> grad(const GradArgs& args) const override;
  int in_place(int) const override { return 0; }
};

class Mul : public Op {
 public:
  std::string_view name() const override { return "mul"; }
  Walk walk(std::span<const ValueType> in) const override {
    return in[0].batched ? Walk::per_sample : Walk::whole;
  }
  std::optional<Reach> reach(std::span<const ValueType> in, int axis, Rows out) const override {
    return pointwise_reach(in, axis, out);
  }
  std::vector<ValueType> infer(std::span<const ValueType> in) const override;
  std::vector<Value> grad(const GradArgs& args) const override;
  int in_place(int) const override { return 0; }
};

/// y = factor * x.
class Scale : public Op {
 public:
  explicit Scale(float factor) : factor_(factor) {}
  float factor() const { return factor_; }
  std::string_view name() const override { return "scale"; }
  std::string attributes() const override;
  Walk walk(std::span<const ValueType> in) const override {
    return in[0].batched ? Walk::per_sample : Walk::whole;
  }
  std::optional<Reach> reach(std::span<const ValueType> in, int axis, Rows out) const override {
    return pointwise_reach(in, axis, out);
  }
  std::vector<ValueType> infer(std::span<const ValueType> in) const override;
  std::vector<Value> grad(const GradArgs& args) const override;
  int in_place(int) const override { return 0; }

 private:
  float factor_;
};

}  // namespace tutti
