#pragma once
// Nearest-neighbour resizing by whole factors, and the sum that is its gradient. One to three
// spatial dimensions.

#include <array>

#include "tutti/graph/graph.h"
#include "tutti/ops/named_op.h"

namespace tutti::ops {

/// Maps positions of y to positions of x, in each spatial dimension: y[i] = x[(first + i) /
/// factor].
struct ResizeAttributes {
  std::array<int64_t, 3> factor{1, 1, 1};
  std::array<int64_t, 3> first{0, 0, 0};  ///< below the factor; used where y is some rows of a
                                          ///< larger result
  std::array<int64_t, 3> count{0, 0, 0};  ///< extent of y; 0: factor times x's extent

  std::string to_string() const;
  /// Returns the extent of y in dimension d for an extent x.
  int64_t extent(size_t d, int64_t x) const { return count[d] > 0 ? count[d] : factor[d] * x; }
};

/// Returns the shape of y for x [N, C, spatial...]. Throws ConfigError naming what does not fit.
Shape resize_output_shape(const ResizeAttributes& attributes, const Shape& x);

/// x [N, C, spatial...] -> y [N, C, out...]: every element of x factor times in each dimension.
class Resize : public OpWith<"resize", Walk::per_sample, ResizeAttributes> {
 public:
  using OpWith::OpWith;
  const ResizeAttributes& resize() const { return a_; }
  std::optional<Reach> reach(Types in, int axis, Rows out) const override;
  std::vector<ValueType> infer(Types in) const override;
  std::vector<Value> grad(const GradArgs& args) const override;
};

/// dy -> dx: sums the elements of dy that an element of x was repeated to.
class ResizeGrad : public NamedOp<"resize_grad", Walk::per_sample> {
 public:
  ResizeGrad(ResizeAttributes attributes, Shape x_shape) : a_(attributes), x_shape_(x_shape) {}
  const ResizeAttributes& resize() const { return a_; }
  const Shape& x_shape() const { return x_shape_; }  ///< its dimension 0 is ignored
  std::string attributes() const override;
  std::vector<ValueType> infer(Types in) const override;

 private:
  ResizeAttributes a_;
  Shape x_shape_;
};

}  // namespace tutti::ops
