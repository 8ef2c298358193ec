#pragma once
// Optimizer updates. One op updates any number of parameters: inputs lr, gradient_scale (f32
// scalars), then for each parameter w, g and its states; w and the states change. Everything is
// f32. g is a sum over replicas: the gradient is g * gradient_scale. `lr` in the formulas stands
// for the input lr times the `rate` of the attributes. Updates are elementwise, so w, g and the
// states must share one layout, whatever it is, and a kernel may be limited to a window of the
// parameters (Window in backend/backend.h). Rules that need norms of whole parameters take two ops:
// ops/norm_update.h.

#include "tutti/graph/graph.h"

namespace tutti::ops {

/// The base of all updates; `states` arrays follow w and g.
class Update : public graph::Op {
 public:
  /// How the op uses the block sums of ops/norm_update.h: as one more input after the scalars, or
  /// as its only output.
  enum class Sums : uint8_t { none, writes, reads };

  explicit Update(int states, Sums sums = Sums::none) : states_(states), sums_(sums) {}
  int states() const { return states_; }
  int arity() const { return 2 + states_; }  ///< inputs for each parameter
  Sums sums() const { return sums_; }
  int leading() const {
    return kScalars + (sums_ == Sums::reads ? 1 : 0);
  }                                   ///< inputs before the first parameter's
  static constexpr int kScalars = 2;  ///< lr, gradient_scale
  graph::Walk walk(graph::Types) const override { return graph::Walk::whole; }
  bool in_update() const override { return true; }
  /// With Sums::writes there is one output, which depends on the layouts of `in`: [blocks of all
  /// parameters in storage, 2].
  std::vector<graph::ValueType> infer(graph::Types in) const override;
  bool mutates(int input) const override {
    return input >= leading() && (input - leading()) % arity() != 1;
  }

 private:
  int states_;
  Sums sums_;
};

/// Stochastic gradient descent as in PyTorch's SGD with dampening 0; state: buf, if momentum > 0.
/// Where `clip` is above 0, each element of g * gradient_scale is first clipped to [-clip, clip].
///   d = g * gradient_scale + weight_decay * w; buf = momentum * buf + d; w -= lr * (nesterov ? d
///     + momentum * buf : buf)
struct SgdAttributes {
  double momentum = 0, weight_decay = 0;
  bool nesterov = false;
  double rate = 1;
  double clip = 0;
};

class SgdUpdate : public Update {
 public:
  explicit SgdUpdate(SgdAttributes attributes)
      : Update(attributes.momentum != 0 ? 1 : 0), a_(attributes) {}
  const SgdAttributes& sgd() const { return a_; }
  std::string_view name() const override { return "sgd_update"; }
  std::string attributes() const override;

 private:
  SgdAttributes a_;
};

/// Adam (Kingma and Ba 2015), or with `decoupled` AdamW (Loshchilov and Hutter 2019), as in
/// PyTorch; states: m, v; t = step + 1; `clip` as in SgdAttributes.
///   decoupled: w *= 1 - lr * weight_decay; else g += weight_decay * w
///   m = beta1 * m + (1 - beta1) * g; v = beta2 * v + (1 - beta2) * g^2
///   w -= lr / (1 - beta1^t) * m / (sqrt(v) / sqrt(1 - beta2^t) + eps)
struct AdamAttributes {
  double beta1 = 0.9, beta2 = 0.999, eps = 1e-8, weight_decay = 0;
  bool decoupled = false;
  double rate = 1;
  double clip = 0;
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

/// RMSprop (Hinton's lecture 6e, 2012) as in PyTorch without momentum, whose alpha is called rho,
/// as in Keras; state: v; `clip` as in SgdAttributes.
///   g += weight_decay * w; v = rho * v + (1 - rho) * g^2; w -= lr * g / (sqrt(v) + eps)
struct RmspropAttributes {
  double rho = 0.9, eps = 1e-8, weight_decay = 0;
  double rate = 1;
  double clip = 0;
};

class RmspropUpdate : public Update {
 public:
  explicit RmspropUpdate(RmspropAttributes attributes) : Update(1), a_(attributes) {}
  const RmspropAttributes& rmsprop() const { return a_; }
  std::string_view name() const override { return "rmsprop_update"; }
  std::string attributes() const override;

 private:
  RmspropAttributes a_;
};

/// A moving average of the weights (Polyak and Juditsky 1992), taken after their update; state: a.
///   a = w in the first `from` updates; a += (1 - decay) * (w - a) later
/// g and the scalars are not read: as inputs they state which sums the update before it waits for.
struct WeightAverageAttributes {
  double decay = 0.999;
  int64_t from = 0;
};

class WeightAverage : public Update {
 public:
  explicit WeightAverage(WeightAverageAttributes attributes) : Update(1), a_(attributes) {}
  const WeightAverageAttributes& average() const { return a_; }
  std::string_view name() const override { return "weight_average"; }
  std::string attributes() const override;
  bool mutates(int input) const override {
    return input >= leading() && (input - leading()) % arity() == 2;
  }

 private:
  WeightAverageAttributes a_;
};

}  // namespace tutti::ops
