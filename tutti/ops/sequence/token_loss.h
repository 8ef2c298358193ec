#pragma once
// The cross entropy of sequences over a vocabulary. Positions whose label is not a token are
// ignored.

#include "tutti/graph/graph.h"
#include "tutti/ops/named_op.h"

namespace tutti::ops {

struct TokenLossAttributes {
  float label_smoothing = 0;
  float scale = 1;
  std::string to_string() const;
};

/// Counts the labels that are tokens, in [0, vocabulary): i32 [N, T] -> f32 scalar; 1 where there
/// are none, so that a mean over them is 0. Runs once, so that later ops need not wait for the
/// end of a band; where ranks share samples, each counts all labels.
class CountTokens : public WithoutGradient<NamedOp<"count_tokens", Walk::whole>> {
 public:
  explicit CountTokens(int64_t vocabulary) : vocabulary_(vocabulary) {}
  int64_t vocabulary() const { return vocabulary_; }
  std::string attributes() const override;
  std::vector<ValueType> infer(Types in) const override;

 private:
  int64_t vocabulary_;
};

/// (logits x [N, V, T], labels i32 [N, T], count of CountTokens) -> (loss, surprise f32 [N, 1, T]):
///   surprise = -log p[y] with p = softmax(x) over dimension 1, 0 where y is outside of [0, V)
///   loss = scale / count * sum over these positions of
///            ((1 - s) * -log p[y] + s / V * sum over k of -log p[k]) with label smoothing s
/// The mean is over the batch's own tokens: where batches hold different numbers of them, replicas
/// and accumulation make a mean of their means, in which tokens of shorter batches weigh more.
/// Since the count is known before, the gradient of a position follows from its own logits, and a
/// plan computes logits, loss and gradients tile by tile: the logits of a batch are never stored.
class TokenLoss : public OpWith<"token_loss", Walk::reduce, TokenLossAttributes> {
 public:
  using OpWith::OpWith;
  const TokenLossAttributes& loss() const { return a_; }
  std::optional<Reach> reach(Types in, int axis, Rows out) const override;
  std::vector<ValueType> infer(Types in) const override;
  std::vector<Value> grad(const GradArgs& args) const override;
};

/// (logits, labels, count, surprise) -> gradient of the logits, of their type.
class TokenLossGrad : public OpWith<"token_loss_grad", Walk::per_sample, TokenLossAttributes> {
 public:
  using OpWith::OpWith;
  const TokenLossAttributes& loss() const { return a_; }
  std::vector<ValueType> infer(Types in) const override;
  int in_place(int) const override { return 0; }
};

/// (logits x [N, V, T], labels i32 [N, T]) -> f32 [N, 1, T]: 1 where the label is the likeliest
/// token, the first of equal ones; 0 elsewhere, and where the label is no token. Used in
/// evaluations.
class TokenHits : public WithoutGradient<NamedOp<"token_hits", Walk::per_sample>> {
 public:
  std::optional<Reach> reach(Types in, int axis, Rows out) const override;
  std::vector<ValueType> infer(Types in) const override;
};

}  // namespace tutti::ops
