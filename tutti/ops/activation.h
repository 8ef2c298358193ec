#pragma once
// Pointwise nonlinearities: y = f(x), and dx = dy * f'(x).
//   relu max(x, 0) | leaky_relu x > 0 ? x : slope * x | sigmoid 1 / (1 + exp(-x)) | tanh
//   gelu x * (1 + erf(x / sqrt(2))) / 2 (Hendrycks and Gimpel 2016, the exact form)
//   gelu_tanh x * (1 + tanh(sqrt(2 / pi) * (x + 0.044715 * x^3))) / 2 (its approximation, GPT-2's)
//   silu x * sigmoid(x)
//   mish x * tanh(log(1 + exp(x))) (Misra 2019)

#include "tutti/graph/graph.h"
#include "tutti/ops/named_op.h"

namespace tutti::ops {

enum class ActivationKind : uint8_t {
  relu,
  leaky_relu,
  sigmoid,
  tanh,
  gelu,
  gelu_tanh,
  silu,
  mish
};
/// Returns all kinds, in order.
std::vector<ActivationKind> activation_kinds();
std::string_view name_of(ActivationKind kind);

/// A nonlinearity as an attribute of an op that ends in one.
struct ActivationAttributes {
  ActivationKind kind = ActivationKind::relu;
  float slope = 0.01f;  ///< leaky_relu only; positive
  /// Whether dy/dx follows from y, so that x need not be kept.
  bool known_from_result() const { return kind < ActivationKind::gelu; }
  /// Whether a larger x never has a smaller y.
  bool never_falls() const { return kind < ActivationKind::gelu; }
  std::string to_string() const;  ///< "relu", "leaky_relu slope 0.3"
  bool operator==(const ActivationAttributes&) const = default;
};
/// Throws ConfigError naming `op` for a slope that allows no gradient.
void require_activation(std::string_view op, const ActivationAttributes& attributes);

/// x -> y of the same type.
class Activation : public RowByRow<OpWith<"activation", kAsBatched, ActivationAttributes>> {
 public:
  using RowByRow::RowByRow;
  const ActivationAttributes& activation() const { return a_; }
  std::vector<ValueType> infer(Types in) const override;
  std::vector<Value> grad(const GradArgs& args) const override;
  int in_place(int) const override { return 0; }
};

/// (dy, r) -> dx. r is the result y for every kind whose derivative follows from it, and x for the
/// others (gelu and those after it).
class ActivationGrad : public OpWith<"activation_grad", kAsBatched, ActivationAttributes> {
 public:
  using OpWith::OpWith;
  const ActivationAttributes& activation() const { return a_; }
  std::vector<ValueType> infer(Types in) const override;
  int in_place(int) const override { return 0; }
};

}  // namespace tutti::ops
