#pragma once
// Pooling over windows in 2 or 3 spatial dimensions, and over everything.
// x [N, C, spatial...], y [N, C, out...]; out = floor((in + pad_low + pad_high - kernel) / stride)
// + 1.

#include <array>

#include "tutti/graph/graph.h"
#include "tutti/ops/named_op.h"

namespace tutti::ops {

enum class PoolKind : uint8_t { max, average };

struct PoolAttributes {
  PoolKind kind = PoolKind::max;
  int spatial = 2;  ///< 2 or 3; only the first `spatial` entries below count
  std::array<int64_t, 3> kernel{1, 1, 1}, stride{1, 1, 1};
  std::array<int64_t, 3> pad_low{0, 0, 0},
      pad_high{0, 0, 0};          ///< less than the kernel; a maximum ignores padding
  bool count_include_pad = true;  ///< average: divide by the window's size, or by its part inside x
  std::string to_string() const;
};

/// Returns the shape of y. Throws ConfigError naming the extents that do not fit.
Shape pool_output_shape(const PoolAttributes& attributes, const Shape& x);

/// x -> y; a maximum also gives the winners, u8 of y's shape: the maximum's index in its window,
/// counted in order of position, padding included. The first of equal elements wins; NaN is larger
/// than any number. With the winners backward needs no x, the largest tensor of many networks.
class Pool : public OpWith<"pool", Walk::per_sample, PoolAttributes> {
 public:
  using OpWith::OpWith;
  const PoolAttributes& pool() const { return a_; }
  std::optional<Reach> reach(Types in, int axis, Rows out) const override;
  std::vector<ValueType> infer(Types in) const override;
  std::vector<Value> grad(const GradArgs& args) const override;
};

/// (dy, [winners if max]) -> dx. Each element of dy goes to its winner, or nowhere if the winner is
/// in the padding.
class PoolGrad : public NamedOp<"pool_grad", Walk::per_sample> {
 public:
  PoolGrad(PoolAttributes attributes, Shape x_shape) : a_(attributes), x_shape_(x_shape) {}
  const PoolAttributes& pool() const { return a_; }
  const Shape& x_shape() const { return x_shape_; }  ///< its dimension 0 is ignored
  std::string attributes() const override;
  std::vector<ValueType> infer(Types in) const override;

 private:
  PoolAttributes a_;
  Shape x_shape_;
};

/// x [N, C, ...] -> mean over all positions [N, C].
class GlobalAveragePool : public NamedOp<"global_average_pool", Walk::per_sample> {
 public:
  std::vector<ValueType> infer(Types in) const override;
  std::vector<Value> grad(const GradArgs& args) const override;
};

/// dy [N, C] -> dx [N, C, ...] = dy / positions.
class GlobalAveragePoolGrad : public NamedOp<"global_average_pool_grad", Walk::per_sample> {
 public:
  explicit GlobalAveragePoolGrad(Shape x_shape) : x_shape_(x_shape) {}
  std::string attributes() const override;
  std::vector<ValueType> infer(Types in) const override;

 private:
  Shape x_shape_;
};

}  // namespace tutti::ops
