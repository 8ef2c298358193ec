#pragma once
// Sequences: an activation [N, C, T] has C channels at each of T positions. These ops make a
// sequence from tokens, numbers below a vocabulary's size V, and mark where in it a position is.

#include "tutti/graph/graph.h"
#include "tutti/ops/named_op.h"

namespace tutti::ops {

/// (w [V, C] or [V, C, 1], tokens i32 [N, T]) -> y [N, C, T] of type `output`:
///   y[n, c, t] = w[tokens[n, t] - first, c]
/// and 0 for a token outside of [first, first + V), such as the -1 of padding. The gradient of w is
/// dense, as w may be the weight of an output layer, too. Tables of which a batch reads few rows
/// use EmbeddingBag (ops/sequence/embedding.h).
class Lookup : public NamedOp<"lookup", Walk::per_sample> {
 public:
  explicit Lookup(DType output = DType::f32, int64_t first = 0) : output_(output), first_(first) {}
  DType output() const { return output_; }
  int64_t first() const { return first_; }  ///< the token of w's first row
  std::string attributes() const override;
  std::optional<Reach> reach(Types in, int axis, Rows out) const override;
  std::vector<ValueType> infer(Types in) const override;
  std::vector<Value> grad(const GradArgs& args) const override;

 private:
  DType output_;
  int64_t first_;
};

/// (dy [N, C, T], tokens i32 [N, T], base f32 where `adds`) -> dw of the shape of w: base, or
/// zeros, plus in each token's row the sum of its dy, added in the order of the batch. Threads own
/// rows, so the sum is the same on any number of threads.
class LookupGrad : public NamedOp<"lookup_grad", Walk::whole> {
 public:
  LookupGrad(Shape w_shape, bool adds, int64_t first = 0)
      : w_shape_(w_shape), adds_(adds), first_(first) {}
  const Shape& w_shape() const { return w_shape_; }
  bool adds() const { return adds_; }
  int64_t first() const { return first_; }
  std::string attributes() const override;
  std::vector<ValueType> infer(Types in) const override;
  int in_place(int) const override { return adds_ ? 2 : -1; }

 private:
  Shape w_shape_;
  bool adds_;
  int64_t first_;
};

/// (x [N, C, T], p f32 [M, C] or [1, M, C], first + T <= M) -> x[n, c, t] + p[first + t, c]:
/// learned positions.
class AddPositions : public NamedOp<"add_positions", Walk::per_sample> {
 public:
  explicit AddPositions(int64_t first = 0) : first_(first) {}
  int64_t first() const { return first_; }  ///< position of x's start in its sequence
  std::string attributes() const override;
  std::vector<ValueType> infer(Types in) const override;
  std::vector<Value> grad(const GradArgs& args) const override;
  int in_place(int) const override { return 0; }

 private:
  int64_t first_;
};

/// dy [N, C, T] -> dp f32 of the shape of p, a sum over the batch; 0 outside of rows [first, first
/// + T).
class AddPositionsGrad : public NamedOp<"add_positions_grad", Walk::reduce> {
 public:
  explicit AddPositionsGrad(Shape p_shape, int64_t first = 0) : p_shape_(p_shape), first_(first) {}
  int64_t first() const { return first_; }
  std::string attributes() const override;
  std::vector<ValueType> infer(Types in) const override;

 private:
  Shape p_shape_;
  int64_t first_;
};

/// (x [N, C, T], token f32 [1, C] or [1, 1, C]) -> y [N, C, T + 1]: every sample's sequence begins
/// with the token, as a classifier's (Devlin et al. 2018).
class PrependToken : public NamedOp<"prepend_token", Walk::per_sample> {
 public:
  std::vector<ValueType> infer(Types in) const override;
  std::vector<Value> grad(const GradArgs& args) const override;
};

}  // namespace tutti::ops
