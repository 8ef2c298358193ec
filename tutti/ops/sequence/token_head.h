#pragma once
// The output layer of a vocabulary and the loss over it (ops/sequence/token_loss.h) as one op. The
// gradient of a position follows from its own logits, so the op makes loss and gradients of some
// positions at a time, and neither the logits of all of them nor their gradient ever exist:
//   logits[k, t] = sum over c of w[k, c] x[c, t]
//   dlogits      = the gradient of TokenLoss
//   dx[c, t]     = sum over k of w[k, c] dlogits[k, t]
//   dw[k, c]     = sum over all positions of dlogits[k, t] x[c, t]
// w, logits and dlogits are rounded to x's type.
// Models say layer and loss apart; fuse_heads (ops/fusion/fuse.h) joins them.

#include "tutti/graph/graph.h"
#include "tutti/ops/sequence/token_loss.h"

namespace tutti {

struct TokenHeadAttributes {
  TokenLossAttributes loss;
  bool hits = false;                   ///< of evaluations
  bool data = false, weights = false;  ///< the gradients that it makes
  std::string to_string() const;
  bool trains() const { return data || weights; }
};

/// (x [N, C, T], w f32 [V, C, 1], labels i32 [N, T], count of CountTokens) -> (loss, surprise f32
/// [N, 1, T]) of TokenLoss, and behind them, in this order, what is asked for: the hits f32
/// [N, 1, T] of TokenHits, dx of x's type, dw f32. The team shares the vocabulary.
class TokenHead : public Op {
 public:
  explicit TokenHead(TokenHeadAttributes attributes) : a_(attributes) {}
  const TokenHeadAttributes& head() const { return a_; }
  /// Which output each is; -1: not asked for.
  int hits_output() const { return a_.hits ? 2 : -1; }
  int data_output() const { return a_.data ? 2 + a_.hits : -1; }
  int weights_output() const { return a_.weights ? 2 + a_.hits + a_.data : -1; }
  std::string_view name() const override { return "token_head"; }
  std::string attributes() const override { return a_.to_string(); }
  Walk walk(std::span<const ValueType>) const override { return Walk::whole; }
  std::vector<ValueType> infer(std::span<const ValueType> in) const override;
  /// Nothing is appended: the gradients are its own outputs. Only one that is wanted is asked for.
  std::vector<Value> grad(const GradArgs& args) const override;
  double flop(std::span<const ValueType> in, std::span<const ValueType> out) const override;

 private:
  TokenHeadAttributes a_;
};

}  // namespace tutti
