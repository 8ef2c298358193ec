#include "tutti/ops/update.h"

#include <algorithm>
#include <cmath>

#include "tutti/backend/reference/rules.h"
#include "tutti/base/numeric/tree_sum.h"
#include "tutti/ops/clip.h"
#include "tutti/ops/norm_update.h"

namespace tutti::backend {
namespace {

/// One parameter of a call. A state that is missing is g.
struct Parameter {
  PlainTensor &w, &g, &s1, &s2;
  int64_t first_block;  ///< first of its own rows among the block sums
  int64_t blocks;
  int64_t block(int64_t i) const { return first_block + w.place(i) / kSumBlock; }
};

/// Calls f(parameter) for each parameter of the call.
template <class F>
void for_each_parameter(const RuleCall& call, const ops::Update& op, F f) {
  const auto arity = static_cast<size_t>(op.arity());
  int64_t block = 0;
  for (auto p = static_cast<size_t>(op.leading()); p < call.in.size(); p += arity) {
    const int64_t blocks = sum_blocks(call.in[p].storage_elements());
    f(Parameter{call.in[p], call.in[p + 1], call.in[arity > 2 ? p + 2 : p + 1],
                call.in[arity > 3 ? p + 3 : p + 1], block, blocks});
    block += blocks;
  }
}

/// Returns the norm whose squares are in a column of the block sums.
double norm(const RuleCall& call, const Parameter& p, int64_t column) {
  double sum = 0;
  for (int64_t b = p.first_block; b < p.first_block + p.blocks; ++b)
    sum += call.in[ops::Update::kScalars][2 * b + column];
  return std::sqrt(sum);
}

/// Limits each element of a gradient to between -clip and clip; 0: no limit.
double clipped(double g, double clip) { return clip > 0 ? std::clamp(g, -clip, clip) : g; }

Rule sgd(const ops::SgdUpdate& op) {
  return {.run = [op, a = op.sgd()](const RuleCall& call) {
    const double lr = call.in[0][0] * a.rate, scale = call.in[1][0];
    for_each_parameter(call, op, [&](const Parameter& p) {
      for (int64_t i = 0; i < p.w.size(); ++i) {
        double d = clipped(p.g[i] * scale, a.clip) + a.weight_decay * p.w[i];
        if (a.momentum != 0) {
          p.s1[i] = a.momentum * p.s1[i] + d;
          d = a.nesterov ? d + a.momentum * p.s1[i] : p.s1[i];
        }
        p.w[i] -= lr * d;
      }
    });
  }};
}

Rule adam(const ops::AdamUpdate& op) {
  return {.run = [op, a = op.adam()](const RuleCall& call) {
    const double lr = call.in[0][0] * a.rate, scale = call.in[1][0],
                 t = static_cast<double>(call.step.step + 1);
    const double correction1 = 1 - std::pow(a.beta1, t), correction2 = 1 - std::pow(a.beta2, t);
    for_each_parameter(call, op, [&](const Parameter& p) {
      for (int64_t i = 0; i < p.w.size(); ++i) {
        double &w = p.w[i], &m = p.s1[i], &v = p.s2[i], g = clipped(p.g[i] * scale, a.clip);
        if (a.decoupled)
          w *= 1 - lr * a.weight_decay;
        else
          g += a.weight_decay * w;
        m = a.beta1 * m + (1.0 - a.beta1) * g;
        v = a.beta2 * v + (1.0 - a.beta2) * g * g;
        w -= lr / correction1 * m / (std::sqrt(v) / std::sqrt(correction2) + a.eps);
      }
    });
  }};
}

Rule rmsprop(const ops::RmspropUpdate& op) {
  return {.run = [op, a = op.rmsprop()](const RuleCall& call) {
    const double lr = call.in[0][0] * a.rate, scale = call.in[1][0];
    for_each_parameter(call, op, [&](const Parameter& p) {
      for (int64_t i = 0; i < p.w.size(); ++i) {
        double &w = p.w[i], &v = p.s1[i];
        const double g = clipped(p.g[i] * scale, a.clip) + a.weight_decay * w;
        v = a.rho * v + (1.0 - a.rho) * g * g;
        w -= lr * g / (std::sqrt(v) + a.eps);
      }
    });
  }};
}

Rule parameter_norms(const ops::ParameterNorms& op) {
  return {.run = [op](const RuleCall& call) {
    call.out[0].fill(0);
    for_each_parameter(call, op, [&](const Parameter& p) {
      for (int64_t i = 0; i < p.w.size(); ++i) {
        call.out[0][2 * p.block(i)] += p.w[i] * p.w[i];
        call.out[0][2 * p.block(i) + 1] += p.g[i] * p.g[i];
      }
    });
  }};
}

Rule gradient_squares(const ops::GradientSquares& op) {
  return {.run = [op](const RuleCall& call) {
    call.out[0].fill(0);
    for_each_parameter(call, op, [&](const Parameter& p) {
      for (int64_t i = 0; i < p.g.size(); ++i) call.out[0][p.block(i)] += p.g[i] * p.g[i];
    });
  }};
}

Rule clip_scale(const ops::ClipScale& op, const KernelRequest& request) {
  return {.run = [blocks = op.blocks(request.in), limit = op.limit()](const RuleCall& call) {
    double sum = 0;
    for (const ops::ClipScale::Blocks& own : blocks)
      for (int64_t b = own.first; b < own.first + own.count; ++b) sum += call.in[own.input][b];
    const double norm = std::abs(call.in[0][0]) * std::sqrt(sum);
    call.out[0][0] = call.in[0][0] * std::min(1.0, limit / (norm + ops::ClipScale::kEps));
    call.out[1][0] = norm;
  }};
}

Rule lars(const ops::LarsUpdate& op) {
  return {.run = [op, a = op.lars()](const RuleCall& call) {
    const double lr = call.in[0][0] * a.rate, scale = call.in[1][0];
    for_each_parameter(call, op, [&](const Parameter& p) {
      const double w_norm = norm(call, p, 0), g_norm = std::abs(scale) * norm(call, p, 1);
      const double local = w_norm > 0 && g_norm > 0
                               ? a.trust * w_norm / (g_norm + a.weight_decay * w_norm + a.eps)
                               : 1;
      for (int64_t i = 0; i < p.w.size(); ++i) {
        p.s1[i] = a.momentum * p.s1[i] + lr * local * (p.g[i] * scale + a.weight_decay * p.w[i]);
        p.w[i] -= p.s1[i];
      }
    });
  }};
}

double lamb_direction(const ops::LambAttributes& a, const RuleCall& call, double w, double m,
                      double v) {
  const double t = static_cast<double>(call.step.step + 1), m_hat = m / (1 - std::pow(a.beta1, t)),
               v_hat = v / (1 - std::pow(a.beta2, t));
  return m_hat / (std::sqrt(v_hat) + a.eps) + a.weight_decay * w;
}

Rule lamb_moments(const ops::LambMoments& op) {
  return {.run = [op, a = op.lamb()](const RuleCall& call) {
    const double scale = call.in[1][0];
    call.out[0].fill(0);
    for_each_parameter(call, op, [&](const Parameter& p) {
      for (int64_t i = 0; i < p.w.size(); ++i) {
        const double g = p.g[i] * scale;
        p.s1[i] = a.beta1 * p.s1[i] + (1 - a.beta1) * g;
        p.s2[i] = a.beta2 * p.s2[i] + (1 - a.beta2) * g * g;
        const double u = lamb_direction(a, call, p.w[i], p.s1[i], p.s2[i]);
        call.out[0][2 * p.block(i)] += p.w[i] * p.w[i];
        call.out[0][2 * p.block(i) + 1] += u * u;
      }
    });
  }};
}

Rule lamb(const ops::LambUpdate& op) {
  return {.run = [op, a = op.lamb()](const RuleCall& call) {
    const double lr = call.in[0][0] * a.rate;
    for_each_parameter(call, op, [&](const Parameter& p) {
      const double w_norm = norm(call, p, 0), u_norm = norm(call, p, 1),
                   ratio = w_norm > 0 && u_norm > 0 ? w_norm / u_norm : 1;
      for (int64_t i = 0; i < p.w.size(); ++i)
        p.w[i] -= lr * ratio * lamb_direction(a, call, p.w[i], p.s1[i], p.s2[i]);
    });
  }};
}

Rule weight_average(const ops::WeightAverage& op) {
  return {.run = [op, a = op.average()](const RuleCall& call) {
    for_each_parameter(call, op, [&](const Parameter& p) {
      for (int64_t i = 0; i < p.w.size(); ++i)
        p.s1[i] = call.step.step < a.from ? p.w[i] : a.decay * p.s1[i] + (1 - a.decay) * p.w[i];
    });
  }};
}

}  // namespace

void register_update_rules(RuleTable& table) {
  table.add<ops::SgdUpdate>(sgd);
  table.add<ops::AdamUpdate>(adam);
  table.add<ops::RmspropUpdate>(rmsprop);
  table.add<ops::WeightAverage>(weight_average);
  table.add<ops::ParameterNorms>(parameter_norms);
  table.add<ops::GradientSquares>(gradient_squares);
  table.add<ops::ClipScale>(clip_scale);
  table.add<ops::LarsUpdate>(lars);
  table.add<ops::LambMoments>(lamb_moments);
  table.add<ops::LambUpdate>(lamb);
}

}  // namespace tutti::backend
