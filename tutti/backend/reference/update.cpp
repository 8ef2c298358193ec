#include "tutti/ops/update.h"

#include <cmath>

#include "tutti/backend/reference/rules.h"

namespace tutti {
namespace {

/// Calls f(w, g, first state, second state) for each parameter; a state that is missing is g.
template <class F>
void for_each_parameter(const RuleCall& call, const size_t arity, F f) {
  for (size_t p = Update::kScalars; p < call.in.size(); p += arity)
    f(call.in[p], call.in[p + 1], call.in[arity > 2 ? p + 2 : p + 1], call.in[arity > 3 ? p + 3 : p + 1]);
}

double norm(const PlainTensor& x) {
  double sum = 0;
  for (int64_t i = 0; i < x.size(); ++i) sum += x[i] * x[i];
  return std::sqrt(sum);
}

Rule sgd(const SgdUpdate& op) {
  return {.run = [a = op.sgd(), arity = static_cast<size_t>(op.arity())](const RuleCall& call) {
    const double lr = call.in[0][0], scale = call.in[1][0];
    for_each_parameter(call, arity, [&](PlainTensor& w, const PlainTensor& g, PlainTensor& buf, PlainTensor&) {
      for (int64_t i = 0; i < w.size(); ++i) {
        double d = g[i] * scale + a.weight_decay * w[i];
        if (a.momentum != 0) {
          buf[i] = a.momentum * buf[i] + d;
          d = a.nesterov ? d + a.momentum * buf[i] : buf[i];
        }
        w[i] -= lr * d;
      }
    });
  }};
}

Rule lars(const LarsUpdate& op) {
  return {.run = [a = op.lars(), arity = static_cast<size_t>(op.arity())](const RuleCall& call) {
    const double lr = call.in[0][0], scale = call.in[1][0];
    for_each_parameter(call, arity, [&](PlainTensor& w, const PlainTensor& g, PlainTensor& v, PlainTensor&) {
      const double w_norm = norm(w), g_norm = std::abs(scale) * norm(g);
      const double local = w_norm > 0 && g_norm > 0 ? a.trust * w_norm / (g_norm + a.weight_decay * w_norm + a.eps) : 1;
      for (int64_t i = 0; i < w.size(); ++i) {
        v[i] = a.momentum * v[i] + lr * local * (g[i] * scale + a.weight_decay * w[i]);
        w[i] -= v[i];
      }
    });
  }};
}

Rule adam(const AdamUpdate& op) {
  return {.run = [a = op.adam(), arity = static_cast<size_t>(op.arity())](const RuleCall& call) {
    const double lr = call.in[0][0], scale = call.in[1][0], t = static_cast<double>(call.step.step + 1);
    const double correction1 = 1 - std::pow(a.beta1, t), correction2 = 1 - std::pow(a.beta2, t);
    for_each_parameter(call, arity, [&](PlainTensor& w, const PlainTensor& gradient, PlainTensor& m, PlainTensor& v) {
      for (int64_t i = 0; i < w.size(); ++i) {
        double g = gradient[i] * scale;
        if (a.decoupled)
          w[i] *= 1 - lr * a.weight_decay;
        else
          g += a.weight_decay * w[i];
        m[i] = a.beta1 * m[i] + (1.0 - a.beta1) * g;
        v[i] = a.beta2 * v[i] + (1.0 - a.beta2) * g * g;
        w[i] -= lr / correction1 * m[i] / (std::sqrt(v[i]) / std::sqrt(correction2) + a.eps);
      }
    });
  }};
}

}  // namespace

Rule update_rule(const KernelRequest& request) {
  const Op* op = request.op;
  if (const auto* s = dynamic_cast<const SgdUpdate*>(op)) return sgd(*s);
  if (const auto* l = dynamic_cast<const LarsUpdate*>(op)) return lars(*l);
  if (const auto* a = dynamic_cast<const AdamUpdate*>(op)) return adam(*a);
  return {};
}

}  // namespace tutti
