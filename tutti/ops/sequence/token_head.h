#pragma once
// The output layer of a vocabulary and the loss over it (ops/sequence/token_loss.h) as one op. The
// gradient of a position follows from its own logits, so the op makes loss and gradients of some
// positions at a time, and neither the logits of all of them nor their gradient ever exist:
//   logits[k, t] = sum over c of w[k, c] x[c, t]
//   dlogits      = the gradient of TokenLoss
//   dx[c, t]     = sum over k of w[k, c] dlogits[k, t]
//   dw[k, c]     = sum over all positions of dlogits[k, t] x[c, t]
// w, logits and dlogits are rounded to x's type. Models state layer and loss separately; fuse_heads
// (ops/fusion/fuse.h) joins them.

#include "tutti/graph/graph.h"
#include "tutti/ops/named_op.h"
#include "tutti/ops/sequence/token_loss.h"

namespace tutti::ops {

struct TokenHeadAttributes {
  TokenLossAttributes loss;
  bool hits = false;                   ///< makes the hits of an evaluation
  bool data = false, weights = false;  ///< the gradients that the op makes
  std::string to_string() const;
  bool trains() const { return data || weights; }
};

/// (x [N, C, T], w f32 [V, C, 1], labels i32 [N, T], count of CountTokens) -> (loss, surprise f32
/// [N, 1, T]) of TokenLoss, followed, in this order, by the requested ones of: hits f32 [N, 1,
/// T] of TokenHits, dx of x's type, dw f32. The team shares the vocabulary.
class TokenHead : public OpWith<"token_head", Walk::whole, TokenHeadAttributes> {
 public:
  using OpWith::OpWith;
  const TokenHeadAttributes& head() const { return a_; }
  /// The index of each optional output; -1: not requested.
  int hits_output() const { return a_.hits ? 2 : -1; }
  int data_output() const { return a_.data ? 2 + a_.hits : -1; }
  int weights_output() const { return a_.weights ? 2 + a_.hits + a_.data : -1; }
  std::vector<ValueType> infer(Types in) const override;
  /// Appends nothing: the gradients are outputs. Throws ConfigError if a needed one was not
  /// requested.
  std::vector<Value> grad(const GradArgs& args) const override;
  double flop(Types in, Types out) const override;
};

}  // namespace tutti::ops
