#pragma once
// Updates whose rate depends on norms of whole parameters, LARS and LAMB. Each takes two ops, so
// that a rank may work on its shard of the parameters alone and the norms still have the same bits:
//   sums = first op: two sums of squares for each block of kSumBlock elements of each parameter,
//     0 for blocks outside the window
//   AllReduceNorms (ops/exchange.h): sums over ranks. Only one rank contributes to a block, and
//     x + 0 is x
//   second op: adds each parameter's block sums in the tree of base/numeric/tree_sum.h and updates
//     with the norms
// Blocks count storage elements, padding included, parameter after parameter in the order of the
// inputs. A block's sum is taken in double precision and kept as f32: its rounding, 2^-24, is no
// more than the rounding of the rate. All four ops have the inputs of an Update.

#include "tutti/ops/update.h"

namespace tutti::ops {

/// LARS (You, Gitman, Ginsburg 2017, algorithm 1); state: v. Each norm is over one parameter; g
/// here is g * gradient_scale:
///   local = trust * |w| / (|g| + weight_decay * |w| + eps), 1 if |w| or |g| is 0
///   v = momentum * v + lr * local * (g + weight_decay * w); w -= v
struct LarsAttributes {
  double momentum = 0.9, weight_decay = 0, trust = 0.001, eps = 0, rate = 1;
  std::string to_string() const;
};

/// The first op of LARS: returns block sums of w^2 and of g^2, not scaled; changes nothing. No
/// states.
class ParameterNorms : public Update {
 public:
  ParameterNorms() : Update(0, Sums::writes) {}
  std::string_view name() const override { return "parameter_norms"; }
  bool mutates(int) const override { return false; }
};

class LarsUpdate : public UpdateWith<"lars_update", LarsAttributes> {
 public:
  explicit LarsUpdate(LarsAttributes a) : UpdateWith(a, 1, Sums::reads) {}
  const LarsAttributes& lars() const { return a_; }
};

/// LAMB (You et al. 2020, algorithm 2) with phi(x) = x; states: m, v; t = step + 1.
///   m = beta1 * m + (1 - beta1) * g; v = beta2 * v + (1 - beta2) * g^2
///   u = m / (1 - beta1^t) / (sqrt(v / (1 - beta2^t)) + eps) + weight_decay * w
///   w -= lr * (|w| / |u|) * u, the ratio of norms being 1 if one of them is 0
struct LambAttributes {
  double beta1 = 0.9, beta2 = 0.999, eps = 1e-6, weight_decay = 0, rate = 1;  ///< eps > 0
  std::string to_string() const;
};

/// The first op of LAMB: updates m and v; returns block sums of w^2 and of u^2.
class LambMoments : public UpdateWith<"lamb_moments", LambAttributes> {
 public:
  explicit LambMoments(LambAttributes a) : UpdateWith(a, 2, Sums::writes) {}
  const LambAttributes& lamb() const { return a_; }
  bool mutates(int input) const override {
    return input >= leading() && (input - leading()) % arity() >= 2;
  }
};

/// The second op of LAMB: computes u again from the new m and v, and updates w alone.
class LambUpdate : public UpdateWith<"lamb_update", LambAttributes> {
 public:
  explicit LambUpdate(LambAttributes a) : UpdateWith(a, 2, Sums::reads) {}
  const LambAttributes& lamb() const { return a_; }
  bool mutates(int input) const override {
    return input >= leading() && (input - leading()) % arity() == 0;
  }
};

}  // namespace tutti::ops
