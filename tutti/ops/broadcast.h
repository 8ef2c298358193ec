#pragma once
// Broadcast spreads one number per sample and channel over positions; SpatialSum, its gradient, is
// the sum over positions. Both have 2 or 3 spatial dimensions.

#include "tutti/graph/graph.h"
#include "tutti/ops/named_op.h"

namespace tutti::ops {

/// x [N, C, 1, 1] or [N, C, 1, 1, 1] -> y [N, C, spatial...]: y[n, c, ...] = x[n, c].
class Broadcast : public NamedOp<"broadcast", Walk::per_sample> {
 public:
  explicit Broadcast(Shape spatial) : spatial_(spatial) {}
  const Shape& spatial() const { return spatial_; }  ///< y's extents from dimension 2 on
  std::string attributes() const override { return spatial_.to_string(); }
  std::optional<Reach> reach(Types in, int axis, Rows out) const override;
  std::vector<ValueType> infer(Types in) const override;
  std::vector<Value> grad(const GradArgs& args) const override;

 private:
  Shape spatial_;
};

/// x [N, C, spatial...] -> y [N, C, 1, 1] or [N, C, 1, 1, 1]: the sum over all positions.
class SpatialSum : public NamedOp<"spatial_sum", Walk::per_sample> {
 public:
  std::vector<ValueType> infer(Types in) const override;
  std::vector<Value> grad(const GradArgs& args) const override;
};

}  // namespace tutti::ops
