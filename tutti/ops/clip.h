#pragma once
// The gradient is clipped by its norm over all trained parameters, as in PyTorch's clip_grad_norm_
// with the 2-norm. The ops give the same bits however ranks share the parameters:
//   squares = GradientSquares, one for each bucket: the sum of g^2 of each block
// (ops/norm_update.h)
//   AllReduceNorms, where updates are sharded
//   scale, norm = ClipScale: adds all of them; the updates take `scale` as their gradient_scale

#include <vector>

#include "tutti/ops/named_op.h"
#include "tutti/ops/update.h"

namespace tutti::ops {

/// Has the inputs of an Update without states; changes nothing. Returns block sums of g^2, not
/// scaled, [blocks of all parameters in storage, 1]; they are 0 for blocks outside the window. A
/// block's sum is taken in double precision and kept as f32, so that gradients above 5e17 overflow:
/// the norm is then infinite.
class GradientSquares : public Update {
 public:
  GradientSquares() : Update(0, Sums::writes) {}
  std::string_view name() const override { return "gradient_squares"; }
  bool mutates(int) const override { return false; }
  std::vector<ValueType> infer(Types in) const override;
};

/// Inputs: gradient_scale; the block sums of each set of parameters; then the parameters, one set
/// after another. Only the parameters' layouts in memory count: they tell which sums belong to
/// which.
///   norm = |gradient_scale| * sqrt(sum of the blocks' sums)
///   scale = gradient_scale * min(1, limit / (norm + 1e-6))
/// The trees of base/numeric/tree_sum.h add a parameter's blocks, then the parameters in a given
/// order, in double precision. Outputs: scale and norm, f32 scalars. Where min gives 1, scale has
/// the bits of gradient_scale.
class ClipScale : public NamedOp<"clip_scale", Walk::whole> {
 public:
  struct Attributes {
    double limit = 1;             ///< above 0
    std::vector<int> parameters;  ///< number of parameters in each set
    std::vector<int> order;       ///< order of addition, as indices among the inputs' parameters
  };
  static constexpr double kEps = 1e-6;

  explicit ClipScale(Attributes attributes) : a_(std::move(attributes)) {}
  double limit() const { return a_.limit; }
  std::string attributes() const override;
  bool in_update() const override { return true; }
  std::vector<ValueType> infer(Types in) const override;

  /// The rows of block sums that belong to one parameter.
  struct Blocks {
    size_t input;  ///< the input that holds them
    int64_t first, count;
  };
  /// Returns the blocks of each parameter, in the order in which they are added.
  std::vector<Blocks> blocks(std::span<const TensorDesc> in) const;

 private:
  size_t first_parameter() const { return 1 + a_.parameters.size(); }
  Attributes a_;
};

}  // namespace tutti::ops
