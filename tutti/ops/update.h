#pragma once
// Optimizer updates. One op updates any number of parameters: inputs lr, gradient_scale (f32 scalars), then for each parameter
// w, g and its states; no outputs; w and the states change. Everything is f32. g is a sum over replicas: the gradient is
// g * gradient_scale. Updates are elementwise (but for LARS's norms), so w, g and the states must share one layout, whatever it is.

#include "tutti/graph/graph.h"

namespace tutti {

/// What all updates share; `states` arrays follow w and g.
class Update : public Op {
 public:
  explicit Update(int states) : states_(states) {}
  int states() const { return states_; }
  int arity() const { return 2 + states_; }  ///< inputs for each parameter
  static constexpr int kScalars = 2;         ///< lr, gradient_scale
  Walk walk(std::span<const ValueType>) const override { return Walk::whole; }
  std::vector<ValueType> infer(std::span<const ValueType> in) const override;
  bool mutates(int input) const override { return input >= kScalars && (input - kScalars) % arity() != 1; }

 private:
  int states_;
};

/// Stochastic gradient descent as PyTorch's SGD with dampening 0; state: buf, if momentum > 0.
///   d = g * gradient_scale + weight_decay * w; buf = momentum * buf + d; w -= lr * (nesterov ? d + momentum * buf : buf)
struct SgdAttributes {
  double momentum = 0, weight_decay = 0;
  bool nesterov = false;
};

class SgdUpdate : public Update {
 public:
  explicit SgdUpdate(SgdAttributes attributes) : Update(attributes.momentum != 0 ? 1 : 0), a_(attributes) {}
  const SgdAttributes& sgd() const { return a_; }
  std::string_view name() const override { return "sgd_update"; }
  std::string attributes() const override;

 private:
  SgdAttributes a_;
};

/// LARS (You, Gitman, Ginsburg 2017, algorithm 1); state: v. Norms are over one parameter, in double precision:
///   local = trust * |w| / (|g| + weight_decay * |w| + eps), 1 if |w| or |g| is 0
///   v = momentum * v + lr * local * (g + weight_decay * w); w -= v
struct LarsAttributes {
  double momentum = 0.9, weight_decay = 0, trust = 0.001, eps = 0;
};

class LarsUpdate : public Update {
 public:
  explicit LarsUpdate(LarsAttributes attributes) : Update(1), a_(attributes) {}
  const LarsAttributes& lars() const { return a_; }
  std::string_view name() const override { return "lars_update"; }
  std::string attributes() const override;

 private:
  LarsAttributes a_;
};

/// Adam (Kingma and Ba 2015), or with `decoupled` AdamW (Loshchilov and Hutter 2019), as PyTorch's; states: m, v; t = step + 1.
///   decoupled: w *= 1 - lr * weight_decay; else g += weight_decay * w
///   m = beta1 * m + (1 - beta1) * g; v = beta2 * v + (1 - beta2) * g^2
///   w -= lr / (1 - beta1^t) * m / (sqrt(v) / sqrt(1 - beta2^t) + eps)
struct AdamAttributes {
  double beta1 = 0.9, beta2 = 0.999, eps = 1e-8, weight_decay = 0;
  bool decoupled = false;
};

class AdamUpdate : public Update {
 public:
  explicit AdamUpdate(AdamAttributes attributes) : Update(2), a_(attributes) {}
  const AdamAttributes& adam() const { return a_; }
  std::string_view name() const override { return "adam_update"; }
  std::string attributes() const override;

 private:
  AdamAttributes a_;
};

}  // namespace tutti
