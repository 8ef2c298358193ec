#pragma once
// The gate of Llama's hidden layers (SwiGLU, Shazeer 2020): y = silu(g) u, silu(g) = g sigmoid(g).
// It is one op, so neither silu(g) nor its gradient goes to memory.

#include "tutti/graph/graph.h"
#include "tutti/ops/named_op.h"

namespace tutti::ops {

/// (g, u) -> y, all of one shape and type.
class SwiGlu : public RowByRow<NamedOp<"swiglu", Walk::per_sample>> {
 public:
  std::vector<ValueType> infer(Types in) const override;
  std::vector<Value> grad(const GradArgs& args) const override;
};

/// (dy, g, u) -> (dg, du).
class SwiGluGrad : public NamedOp<"swiglu_grad", Walk::per_sample> {
 public:
  std::vector<ValueType> infer(Types in) const override;
  int in_place(int output) const override { return output == 0 ? 0 : -1; }
};

}  // namespace tutti::ops
