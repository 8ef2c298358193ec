// Add, Mul, Scale, activations, dropout, Reorder.

#include <algorithm>
#include <cmath>
#include <numbers>

#include "tutti/backend/reference/rules.h"
#include "tutti/ops/activation.h"
#include "tutti/ops/dropout.h"
#include "tutti/ops/elementwise.h"
#include "tutti/ops/gaussian_sample.h"
#include "tutti/ops/parts.h"
#include "tutti/ops/reorder.h"

namespace tutti::backend {
namespace {

constexpr double kGeluFactor =
    std::numbers::sqrt2 * std::numbers::inv_sqrtpi;  // sqrt(2 / pi), for gelu_tanh
constexpr double kGeluCube = 0.044715;

double gelu_argument(double x) { return kGeluFactor * (x + kGeluCube * x * x * x); }

}  // namespace

double activate(const ops::ActivationAttributes& f, double x) {
  switch (f.kind) {
    case ops::ActivationKind::relu: return std::max(x, 0.0);
    case ops::ActivationKind::leaky_relu: return x > 0 ? x : static_cast<double>(f.slope) * x;
    case ops::ActivationKind::sigmoid: return 1 / (1 + std::exp(-x));
    case ops::ActivationKind::tanh: return std::tanh(x);
    case ops::ActivationKind::gelu: return 0.5 * x * (1 + std::erf(x / std::numbers::sqrt2));
    case ops::ActivationKind::gelu_tanh: return 0.5 * x * (1 + std::tanh(gelu_argument(x)));
    case ops::ActivationKind::silu: return x / (1 + std::exp(-x));
    case ops::ActivationKind::mish: return x * std::tanh(std::log1p(std::exp(x)));
  }
  return x;
}

namespace {

/// Returns dy/dx in terms of the result y, or of x where it does not follow from y.
double slope_at(const ops::ActivationAttributes& f, double r) {
  switch (f.kind) {
    case ops::ActivationKind::relu: return r > 0 ? 1 : 0;
    case ops::ActivationKind::leaky_relu: return r > 0 ? 1 : static_cast<double>(f.slope);
    case ops::ActivationKind::sigmoid: return r * (1 - r);
    case ops::ActivationKind::tanh: return 1 - r * r;
    case ops::ActivationKind::gelu:
      return 0.5 * (1 + std::erf(r / std::numbers::sqrt2)) +
             r * std::exp(-0.5 * r * r) * 0.5 * std::numbers::sqrt2 * std::numbers::inv_sqrtpi;
    case ops::ActivationKind::gelu_tanh: {
      const double t = std::tanh(gelu_argument(r));
      return 0.5 * (1 + t) + 0.5 * r * (1 - t * t) * kGeluFactor * (1 + 3 * kGeluCube * r * r);
    }
    case ops::ActivationKind::silu: {
      const double s = 1 / (1 + std::exp(-r));
      return s * (1 + r * (1 - s));
    }
    case ops::ActivationKind::mish: {
      const double t = std::tanh(std::log1p(std::exp(r)));
      return t + r * (1 - t * t) / (1 + std::exp(-r));
    }
  }
  return 1;
}

/// Computes out = f(i) for every element i.
template <class F>
Rule each(F f) {
  return {.run = [f](const RuleCall& call) {
    for (int64_t i = 0; i < call.out[0].size(); ++i) call.out[0][i] = f(call, i);
  }};
}

Rule dropout(const ops::Dropout& op) {
  const uint32_t threshold = ops::dropout_threshold(op.probability());
  const double keep = 1 / (1 - static_cast<double>(op.probability()));
  return each(
      [=, salt = op.salt(), first = op.first(), all = op.all()](const RuleCall& call, int64_t i) {
        const int64_t size = call.in[0].shape().elements_from(1);
        int64_t element = i % size;
        if (all > 0) {
          const int64_t positions = call.in[0].shape()[2];
          element = element / positions * all + first + element % positions;
        }
        const ops::SampleKey key{call.step.seed, call.step.step, call.step.replica,
                                 call.first_sample + i / size, salt};
        const uint32_t bits =
            ops::sample_bits(Purpose::dropout, key,
                             static_cast<uint32_t>(element / 4))[static_cast<size_t>(element % 4)];
        return bits < threshold ? 0.0 : call.in[0][i] * keep;
      });
}

Rule gaussian_sample(const ops::GaussianSample& op) {
  return each([factor = static_cast<double>(op.factor()), salt = op.salt()](const RuleCall& call,
                                                                            int64_t i) {
    const int64_t size = call.in[0].shape().elements_from(1);
    const ops::SampleKey key{call.step.seed, call.step.step, call.step.replica,
                             call.first_sample + i / size, salt};
    return call.in[0][i] + std::exp(factor * call.in[1][i]) * ops::gaussian_draw(key, i % size);
  });
}

}  // namespace

void register_pointwise_rules(RuleTable& table) {
  table.add<ops::Add>(
      each([](const RuleCall& call, int64_t i) { return call.in[0][i] + call.in[1][i]; }));
  table.add<ops::Mul>(
      each([](const RuleCall& call, int64_t i) { return call.in[0][i] * call.in[1][i]; }));
  table.add<ops::Reorder>(each([](const RuleCall& call, int64_t i) { return call.in[0][i]; }));
  table.add<ops::Scale>([](const ops::Scale& op) {
    return each([factor = static_cast<double>(op.factor())](const RuleCall& call, int64_t i) {
      return factor * call.in[0][i];
    });
  });
  table.add<ops::Activation>([](const ops::Activation& op) {
    return each([f = op.activation()](const RuleCall& call, int64_t i) {
      return activate(f, call.in[0][i]);
    });
  });
  table.add<ops::ActivationGrad>([](const ops::ActivationGrad& op) {
    return each([f = op.activation()](const RuleCall& call, int64_t i) {
      return call.in[0][i] * slope_at(f, call.in[1][i]);
    });
  });
  table.add<ops::Dropout>(dropout);
  table.add<ops::GaussianSample>(gaussian_sample);
  table.add<ops::SumParts>([](const ops::SumParts& op) {
    return each([scale = static_cast<double>(op.scale())](const RuleCall& call, int64_t i) {
      double sum = 0;
      for (const PlainTensor& x : call.in) sum += x[i];
      return scale * sum;
    });
  });
}

}  // namespace tutti::backend
