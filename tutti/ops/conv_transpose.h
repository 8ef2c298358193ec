#pragma once
// Transposed convolution: the data gradient of a convolution used as a layer (Zeiler et al. 2010).
// x [N, K, spatial...], w [K, C/groups, kernel...], bias [C], y [N, C, out...];
// out = (in - 1) * stride - pad_low - pad_high + dilation * (kernel - 1) + 1 + output_pad, with
// output_pad < stride.

#include "tutti/ops/conv.h"
#include "tutti/ops/named_op.h"

namespace tutti::ops {

/// y = conv_backward_data(x, w) [+ bias]: `attributes` describe the convolution that leads from y's
/// shape to x's. The gradients are an ordinary convolution of dy, and the weight gradient with the
/// roles of x and dy exchanged.
class ConvTranspose : public NamedOp<"conv_transpose", Walk::per_sample> {
 public:
  ConvTranspose(ConvAttributes attributes, bool bias, std::array<int64_t, 3> output_pad = {0, 0, 0})
      : a_(attributes), output_pad_(output_pad), bias_(bias) {}
  const ConvAttributes& conv() const { return a_; }
  bool bias() const { return bias_; }
  std::string attributes() const override;
  std::optional<Reach> reach(Types in, int axis, Rows out) const override;
  std::vector<ValueType> infer(Types in) const override;
  std::vector<Value> grad(const GradArgs& args) const override;
  double flop(Types in, Types out) const override;

 private:
  ConvAttributes a_;
  std::array<int64_t, 3> output_pad_;
  bool bias_;
};

}  // namespace tutti::ops
