#pragma once
// The loss over a vocabulary (ops/sequence/token_loss.h) whose logits ranks share: each rank has
// the logits of some tokens, x [N, count, T]. For each position the ranks exchange three numbers;
// the gradient of a rank's logits follows from its own logits and the sum over all ranks.

#include "tutti/graph/graph.h"
#include "tutti/ops/named_op.h"
#include "tutti/ops/sequence/token_loss.h"

namespace tutti::ops {

/// Tokens [first, first + count) of `all`.
struct VocabularySlice {
  int64_t first = 0, count = 0, all = 0;
  std::string to_string() const;
};

/// (x, labels i32 [N, T]) -> f32 [N, 3, T], 0 where a label is no token: the logarithm of the
/// sum of exp(x); the label's logit, 0 where another rank has it; the sum of x.
class TokenStatistics : public NamedOp<"token_statistics", graph::Walk::per_sample> {
 public:
  explicit TokenStatistics(VocabularySlice slice) : slice_(slice) {}
  const VocabularySlice& slice() const { return slice_; }
  std::string attributes() const override { return slice_.to_string(); }
  std::vector<graph::ValueType> infer(graph::Types in) const override;
  /// None: the rule of TokenLossOfRanks covers it.
  std::vector<graph::Value> grad(const graph::GradArgs& args) const override;

 private:
  VocabularySlice slice_;
};

/// (x, labels, count of CountTokens, statistics of each rank in order) -> (loss, surprise f32 [N,
/// 1, T], logarithm of the sum of exp over all tokens f32 [N, 1, T]), with loss and surprise as in
/// TokenLoss. Only the gradient reads x.
class TokenLossOfRanks : public NamedOp<"token_loss_of_ranks", graph::Walk::reduce> {
 public:
  TokenLossOfRanks(TokenLossAttributes attributes, VocabularySlice slice, int ranks)
      : a_(attributes), slice_(slice), ranks_(ranks) {}
  const TokenLossAttributes& loss() const { return a_; }
  const VocabularySlice& slice() const { return slice_; }
  int ranks() const { return ranks_; }
  std::string attributes() const override;
  std::vector<graph::ValueType> infer(graph::Types in) const override;
  std::vector<graph::Value> grad(const graph::GradArgs& args) const override;

 private:
  TokenLossAttributes a_;
  VocabularySlice slice_;
  int ranks_;
};

/// (x, labels, count, logarithm of the sum over all tokens) -> gradient of x, of its type.
class TokenLossOfRanksGrad : public NamedOp<"token_loss_of_ranks_grad", graph::Walk::per_sample> {
 public:
  TokenLossOfRanksGrad(TokenLossAttributes attributes, VocabularySlice slice)
      : a_(attributes), slice_(slice) {}
  const TokenLossAttributes& loss() const { return a_; }
  const VocabularySlice& slice() const { return slice_; }
  std::string attributes() const override;
  std::vector<graph::ValueType> infer(graph::Types in) const override;
  int in_place(int) const override { return 0; }

 private:
  TokenLossAttributes a_;
  VocabularySlice slice_;
};

/// (x, labels i32 [N, T]) -> f32 [N, 3, T], 0 where a label is no token: the greatest logit of the
/// rank's tokens before the label in the vocabulary; the label's logit, 0 where another rank has
/// it; the greatest logit of the rank's tokens after the label. Without such tokens it is the
/// lowest f32.
class TokenRivals : public NamedOp<"token_rivals", graph::Walk::per_sample> {
 public:
  explicit TokenRivals(VocabularySlice slice) : slice_(slice) {}
  const VocabularySlice& slice() const { return slice_; }
  std::string attributes() const override { return slice_.to_string(); }
  std::vector<graph::ValueType> infer(graph::Types in) const override;
  std::vector<graph::Value> grad(
      const graph::GradArgs& args) const override;  // none: used in evaluations

 private:
  VocabularySlice slice_;
};

/// (labels, rivals of each rank in order) -> f32 [N, 1, T], the hits of TokenHits.
class TokenHitsOfRanks : public NamedOp<"token_hits_of_ranks", graph::Walk::per_sample> {
 public:
  TokenHitsOfRanks(int64_t vocabulary, int ranks) : vocabulary_(vocabulary), ranks_(ranks) {}
  int64_t vocabulary() const { return vocabulary_; }
  int ranks() const { return ranks_; }
  std::string attributes() const override;
  std::vector<graph::ValueType> infer(graph::Types in) const override;
  std::vector<graph::Value> grad(
      const graph::GradArgs& args) const override;  // none: it is a step function

 private:
  int64_t vocabulary_;
  int ranks_;
};

}  // namespace tutti::ops
