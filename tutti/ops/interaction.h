#pragma once
// How strongly the features of a sample agree: the dot products of all pairs of them, as
// recommendation models use them (Naumov et al. 2019, DLRM).

#include "tutti/graph/graph.h"
#include "tutti/ops/named_op.h"

namespace tutti::ops {

/// The products of F features: those of pairs (i, j) with j < i, or with j <= i (`itself`).
struct FeaturePairs {
  int64_t features = 0;
  bool itself = false;
  int64_t count() const { return features * (features + (itself ? 1 : -1)) / 2; }
  /// Returns the index of the product of i and j, in either order: row by row of the lower
  /// triangle.
  int64_t place(int64_t i, int64_t j) const {
    const int64_t row = i > j ? i : j, column = i > j ? j : i;
    return row * (row + (itself ? 1 : -1)) / 2 + column;
  }
};

/// x [N, F D], F features of D = `width` numbers one after the other -> y [N, pairs]:
/// y of (i, j) = sum over d of x[i, d] x[j, d].
class Interaction : public NamedOp<"interaction", graph::Walk::per_sample> {
 public:
  explicit Interaction(int64_t width, bool itself = false) : width_(width), itself_(itself) {}
  int64_t width() const { return width_; }
  bool itself() const { return itself_; }
  std::string attributes() const override;
  std::vector<graph::ValueType> infer(graph::Types in) const override;
  std::vector<graph::Value> grad(const graph::GradArgs& args) const override;
  double flop(graph::Types in, graph::Types out) const override;

 private:
  int64_t width_;
  bool itself_;
};

/// (dy, x) -> dx[i] = sum over j of dy(i, j) x[j], where the product of i with itself counts twice.
class InteractionGrad : public NamedOp<"interaction_grad", graph::Walk::per_sample> {
 public:
  explicit InteractionGrad(int64_t width, bool itself = false) : width_(width), itself_(itself) {}
  int64_t width() const { return width_; }
  bool itself() const { return itself_; }
  std::string attributes() const override;
  std::vector<graph::ValueType> infer(graph::Types in) const override;
  double flop(graph::Types in, graph::Types out) const override;

 private:
  int64_t width_;
  bool itself_;
};

}  // namespace tutti::ops
