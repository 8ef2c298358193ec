#pragma once
// The gate of Llama's hidden layers (SwiGLU, Shazeer 2020): y = silu(g) u, silu(g) = g sigmoid(g).
// It is one op, so neither silu(g) nor its gradient goes to memory.

#include "tutti/graph/graph.h"
#include "tutti/ops/rows.h"

namespace tutti {

/// (g, u) -> y, all of one shape and type.
class SwiGlu : public Op {
 public:
  std::string_view name() const override { return "swiglu"; }
  Walk walk(std::span<const ValueType>) const override { return Walk::per_sample; }
  std::optional<Reach> reach(std::span<const ValueType> in, int axis, Rows out) const override {
    return pointwise_reach(in, axis, out);
  }
  std::vector<ValueType> infer(std::span<const ValueType> in) const override;
  std::vector<Value> grad(const GradArgs& args) const override;
};

/// (dy, g, u) -> (dg, du).
class SwiGluGrad : public Op {
 public:
  std::string_view name() const override { return "swiglu_grad"; }
  Walk walk(std::span<const ValueType>) const override { return Walk::per_sample; }
  std::vector<ValueType> infer(std::span<const ValueType> in) const override;
  int in_place(int output) const override { return output == 0 ? 0 : -1; }
};

}  // namespace tutti
