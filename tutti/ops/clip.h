#pragma once
// Clipping of the gradient by its norm over all trained parameters, as PyTorch's clip_grad_norm_
// with the 2-norm, in ops that have the same bits however ranks share the parameters:
//   squares = GradientSquares, one a bucket: the sum of g^2 of each block (ops/norm_update.h)
//   AllReduceNorms, where updates are sharded
//   scale, norm = ClipScale: adds all of them; the updates take `scale` as their gradient_scale

#include <vector>

#include "tutti/ops/update.h"

namespace tutti {

/// Inputs of an Update without states; changes nothing. Block sums of g^2, not scaled,
/// [blocks of all parameters in storage, 1]; of blocks outside the window 0. A block's sum is taken
/// in double precision and kept as f32, so that gradients above 5e17 overflow: the norm is then
/// infinite.
class GradientSquares : public Update {
 public:
  GradientSquares() : Update(0, Sums::writes) {}
  std::string_view name() const override { return "gradient_squares"; }
  bool mutates(int) const override { return false; }
  std::vector<ValueType> infer(std::span<const ValueType> in) const override;
};

/// Inputs: gradient_scale; the block sums of each set of parameters; then the parameters, set after
/// set, of which only how they lie in memory counts: it says which sums are whose.
///   norm = |gradient_scale| * sqrt(sum of the blocks' sums)
///   scale = gradient_scale * min(1, limit / (norm + 1e-6))
/// The trees of base/numeric/tree_sum.h add a parameter's blocks, then the parameters in a given
/// order, in double precision. Outputs: scale and norm, f32 scalars. Where min gives 1, scale has
/// the bits of gradient_scale.
class ClipScale : public Op {
 public:
  struct Attributes {
    double limit = 1;             ///< above 0
    std::vector<int> parameters;  ///< of each set: how many
    std::vector<int> order;       ///< the parameters by their place among the inputs' parameters
  };
  static constexpr double kEps = 1e-6;

  explicit ClipScale(Attributes attributes) : a_(std::move(attributes)) {}
  double limit() const { return a_.limit; }
  std::string_view name() const override { return "clip_scale"; }
  std::string attributes() const override;
  Walk walk(std::span<const ValueType>) const override { return Walk::whole; }
  bool in_update() const override { return true; }
  std::vector<ValueType> infer(std::span<const ValueType> in) const override;

  /// The rows of block sums that are one parameter's.
  struct Blocks {
    size_t input;  ///< that holds them
    int64_t first, count;
  };
  /// Of each parameter, in the order in which they are added.
  std::vector<Blocks> blocks(std::span<const TensorDesc> in) const;

 private:
  size_t first_parameter() const { return 1 + a_.parameters.size(); }
  Attributes a_;
};

}  // namespace tutti
