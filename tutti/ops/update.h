#pragma once
// Optimizer updates. One op updates any number of parameters: inputs lr, gradient_scale (f32
// scalars), then for each parameter w, g and its states; w and the states change. Everything is
// f32. g is a sum over replicas: the gradient is g * gradient_scale. `lr` in the formulas stands
// for the input lr times the `rate` of the attributes. Updates are elementwise, so w, g and the
// states must share one layout, whatever it is, and a kernel may be limited to a window of the
// parameters (Window in backend/backend.h). Rules that need norms of whole parameters take two ops:
// ops/norm_update.h.

#include "tutti/graph/graph.h"
#include "tutti/ops/named_op.h"

namespace tutti::ops {

/// The base of all updates; `states` arrays follow w and g.
class Update : public Op {
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
  Walk walk(Types) const override { return Walk::whole; }
  bool in_update() const override { return true; }
  /// With Sums::writes there is one output, which depends on the layouts of `in`: [blocks of all
  /// parameters in storage, 2].
  std::vector<ValueType> infer(Types in) const override;
  bool mutates(int input) const override {
    return input >= leading() && (input - leading()) % arity() != 1;
  }

 private:
  int states_;
  Sums sums_;
};

/// An update of this name with attributes a_, which print themselves: A::to_string().
template <OpName kName, class A>
class UpdateWith : public Update {
 public:
  UpdateWith(A attributes, int states, Sums sums = Sums::none)
      : Update(states, sums), a_(attributes) {}
  std::string_view name() const override { return kName.text; }
  std::string attributes() const override { return a_.to_string(); }

 protected:
  A a_;
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
  std::string to_string() const;
};

class SgdUpdate : public UpdateWith<"sgd_update", SgdAttributes> {
 public:
  explicit SgdUpdate(SgdAttributes a) : UpdateWith(a, a.momentum != 0 ? 1 : 0) {}
  const SgdAttributes& sgd() const { return a_; }
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
  std::string to_string() const;
};

class AdamUpdate : public UpdateWith<"adam_update", AdamAttributes> {
 public:
  explicit AdamUpdate(AdamAttributes a) : UpdateWith(a, 2) {}
  const AdamAttributes& adam() const { return a_; }
};

/// RMSprop (Hinton's lecture 6e, 2012) as in PyTorch without momentum, whose alpha is called rho,
/// as in Keras; state: v; `clip` as in SgdAttributes.
///   g += weight_decay * w; v = rho * v + (1 - rho) * g^2; w -= lr * g / (sqrt(v) + eps)
struct RmspropAttributes {
  double rho = 0.9, eps = 1e-8, weight_decay = 0;
  double rate = 1;
  double clip = 0;
  std::string to_string() const;
};

class RmspropUpdate : public UpdateWith<"rmsprop_update", RmspropAttributes> {
 public:
  explicit RmspropUpdate(RmspropAttributes a) : UpdateWith(a, 1) {}
  const RmspropAttributes& rmsprop() const { return a_; }
};

/// A moving average of the weights (Polyak and Juditsky 1992), taken after their update; state: a.
///   a = w in the first `from` updates; a += (1 - decay) * (w - a) later
/// g and the scalars are not read: as inputs they state which sums the update before it waits for.
struct WeightAverageAttributes {
  double decay = 0.999;
  int64_t from = 0;
  std::string to_string() const;
};

class WeightAverage : public UpdateWith<"weight_average", WeightAverageAttributes> {
 public:
  explicit WeightAverage(WeightAverageAttributes a) : UpdateWith(a, 1) {}
  const WeightAverageAttributes& average() const { return a_; }
  bool mutates(int input) const override {
    return input >= leading() && (input - leading()) % arity() == 2;
  }
};

}  // namespace tutti::ops
