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

struct InteractionAttributes {
  int64_t width = 1;    ///< numbers of a feature
  bool itself = false;  ///< products of features with themselves, too
  std::string to_string() const;
};

/// x [N, F D], F features of D = `width` numbers one after the other -> y [N, pairs]:
/// y of (i, j) = sum over d of x[i, d] x[j, d].
class Interaction : public OpWith<"interaction", Walk::per_sample, InteractionAttributes> {
 public:
  using OpWith::OpWith;
  const InteractionAttributes& interaction() const { return a_; }
  std::vector<ValueType> infer(Types in) const override;
  std::vector<Value> grad(const GradArgs& args) const override;
  double flop(Types in, Types out) const override;
};

/// (dy, x) -> dx[i] = sum over j of dy(i, j) x[j], where the product of i with itself counts twice.
class InteractionGrad : public OpWith<"interaction_grad", Walk::per_sample, InteractionAttributes> {
 public:
  using OpWith::OpWith;
  const InteractionAttributes& interaction() const { return a_; }
  std::vector<ValueType> infer(Types in) const override;
  double flop(Types in, Types out) const override;
};

}  // namespace tutti::ops
