#pragma once
// Convolution in 1 to 3 spatial dimensions, and its explicit backward ops.
// x [N, C, spatial...], w [K, C/groups, kernel...], bias [K], y [N, K, out...];
// out = floor((in + pad_low + pad_high - dilation * (kernel - 1) - 1) / stride) + 1.

#include <array>
#include <optional>

#include "tutti/graph/graph.h"
#include "tutti/ops/activation.h"
#include "tutti/ops/named_op.h"

namespace tutti::ops {

struct ConvAttributes {
  int spatial = 2;  ///< 1 to 3; only the first `spatial` entries below count
  std::array<int64_t, 3> stride{1, 1, 1}, dilation{1, 1, 1};
  std::array<int64_t, 3> pad_low{0, 0, 0},
      pad_high{0, 0, 0};  ///< zeros before and after, per dimension
  int64_t groups = 1;
  std::string to_string() const;
  bool operator==(const ConvAttributes&) const = default;
};

/// Returns the shape of y for these x and w. Throws ConfigError naming the extents that do not fit.
Shape conv_output_shape(const ConvAttributes& attributes, const Shape& x, const Shape& w);

/// y = f(conv(x, w) [+ bias]). Inputs x, w, [bias]. x and y have the same dtype; w and bias are f32
/// at graph level. f is any activation whose gradient follows from y, or none.
class Conv : public NamedOp<"conv", Walk::per_sample> {
 public:
  Conv(ConvAttributes attributes, bool bias,
       std::optional<ActivationAttributes> activation = std::nullopt)
      : a_(attributes), bias_(bias), activation_(activation) {}
  const ConvAttributes& conv() const { return a_; }
  bool bias() const { return bias_; }
  const std::optional<ActivationAttributes>& activation() const { return activation_; }
  std::string attributes() const override;
  std::optional<Reach> reach(Types in, int axis, Rows out) const override;
  std::vector<ValueType> infer(Types in) const override;
  std::vector<Value> grad(const GradArgs& args) const override;
  double flop(Types in, Types out) const override;

 private:
  ConvAttributes a_;
  bool bias_;
  std::optional<ActivationAttributes> activation_;
};

/// Computes dx from (dy, w); x_shape gives the extents that dy alone cannot (dimension 0 comes from
/// dy, and x_shape's is ignored).
class ConvBackwardData : public NamedOp<"conv_backward_data", Walk::per_sample> {
 public:
  ConvBackwardData(ConvAttributes attributes, Shape x_shape) : a_(attributes), x_shape_(x_shape) {}
  const ConvAttributes& conv() const { return a_; }
  const Shape& x_shape() const { return x_shape_; }
  std::string attributes() const override;
  std::vector<ValueType> infer(Types in) const override;
  double flop(Types in, Types out) const override;

 private:
  ConvAttributes a_;
  Shape x_shape_;
};

/// Computes dw (f32) from (x, dy): a sum over the batch. `whole`: the team shares the work by
/// outputs where there is a kernel for that (ops/fusion/fuse.h, share_in_team).
class ConvBackwardWeights : public Op {
 public:
  ConvBackwardWeights(ConvAttributes attributes, Shape w_shape, bool whole = false)
      : a_(attributes), w_shape_(w_shape), whole_(whole) {}
  bool whole() const { return whole_; }
  const ConvAttributes& conv() const { return a_; }
  const Shape& w_shape() const { return w_shape_; }
  std::string_view name() const override { return "conv_backward_weights"; }
  std::string attributes() const override;
  Walk walk(Types) const override { return whole_ ? Walk::whole : Walk::reduce; }
  std::vector<ValueType> infer(Types in) const override;
  double flop(Types in, Types out) const override;

 private:
  ConvAttributes a_;
  Shape w_shape_;
  bool whole_;
};

/// Sums dy over samples and positions per channel, the gradient of a bias: dy [N, K, ...] -> db
/// [K], f32.
class BiasBackward : public NamedOp<"bias_backward", Walk::reduce> {
 public:
  std::vector<ValueType> infer(Types in) const override;
};

}  // namespace tutti::ops
