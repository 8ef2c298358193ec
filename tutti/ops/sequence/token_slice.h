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
/// The gradient rule of TokenLossOfRanks covers it.
class TokenStatistics
    : public WithoutGradient<OpWith<"token_statistics", Walk::per_sample, VocabularySlice>> {
 public:
  using WithoutGradient::WithoutGradient;
  const VocabularySlice& slice() const { return a_; }
  std::vector<ValueType> infer(Types in) const override;
};

/// (x, labels, count of CountTokens, statistics of each rank in order) -> (loss, surprise f32 [N,
/// 1, T], logarithm of the sum of exp over all tokens f32 [N, 1, T]), with loss and surprise as in
/// TokenLoss. Only the gradient reads x.
class TokenLossOfRanks : public NamedOp<"token_loss_of_ranks", Walk::reduce> {
 public:
  TokenLossOfRanks(TokenLossAttributes attributes, VocabularySlice slice, int ranks)
      : a_(attributes), slice_(slice), ranks_(ranks) {}
  const TokenLossAttributes& loss() const { return a_; }
  const VocabularySlice& slice() const { return slice_; }
  int ranks() const { return ranks_; }
  std::string attributes() const override;
  std::vector<ValueType> infer(Types in) const override;
  std::vector<Value> grad(const GradArgs& args) const override;

 private:
  TokenLossAttributes a_;
  VocabularySlice slice_;
  int ranks_;
};

/// (x, labels, count, logarithm of the sum over all tokens) -> gradient of x, of its type.
class TokenLossOfRanksGrad : public NamedOp<"token_loss_of_ranks_grad", Walk::per_sample> {
 public:
  TokenLossOfRanksGrad(TokenLossAttributes attributes, VocabularySlice slice)
      : a_(attributes), slice_(slice) {}
  const TokenLossAttributes& loss() const { return a_; }
  const VocabularySlice& slice() const { return slice_; }
  std::string attributes() const override;
  std::vector<ValueType> infer(Types in) const override;
  int in_place(int) const override { return 0; }

 private:
  TokenLossAttributes a_;
  VocabularySlice slice_;
};

/// (x, labels i32 [N, T]) -> f32 [N, 3, T], 0 where a label is no token: the greatest logit of the
/// rank's tokens before the label in the vocabulary; the label's logit, 0 where another rank has
/// it; the greatest logit of the rank's tokens after the label. Without such tokens it is the
/// lowest f32.
class TokenRivals
    : public WithoutGradient<OpWith<"token_rivals", Walk::per_sample, VocabularySlice>> {
 public:
  using WithoutGradient::WithoutGradient;
  const VocabularySlice& slice() const { return a_; }
  std::vector<ValueType> infer(Types in) const override;
};

/// (labels, rivals of each rank in order) -> f32 [N, 1, T], the hits of TokenHits.
class TokenHitsOfRanks : public WithoutGradient<NamedOp<"token_hits_of_ranks", Walk::per_sample>> {
 public:
  TokenHitsOfRanks(int64_t vocabulary, int ranks) : vocabulary_(vocabulary), ranks_(ranks) {}
  int64_t vocabulary() const { return vocabulary_; }
  int ranks() const { return ranks_; }
  std::string attributes() const override;
  std::vector<ValueType> infer(Types in) const override;

 private:
  int64_t vocabulary_;
  int ranks_;
};

}  // namespace tutti::ops
