#include "tutti/ops/losses.h"

#include <algorithm>
#include <cmath>

#include "tutti/backend/reference/rules.h"

namespace tutti::backend {
namespace {

/// One softmax: the logits of one position, and the values that the loss needs.
struct Softmax {
  const ops::SoftmaxCrossEntropyAttributes& a;
  const PlainTensor& logits;
  int64_t classes, positions;

  Softmax(const ops::SoftmaxCrossEntropyAttributes& attributes, const PlainTensor& x)
      : a(attributes), logits(x), classes(x.shape()[1]), positions(x.shape().elements_from(2)) {}
  /// Returns the index of the logit of class k for label number i.
  int64_t at(int64_t i, int64_t k) const {
    return (i / positions * classes + k) * positions + i % positions;
  }
  double weight(int64_t k) const {
    return a.class_weights.empty() ? 1.0
                                   : static_cast<double>(a.class_weights[static_cast<size_t>(k)]);
  }
  int64_t label(const PlainTensor& labels, int64_t i) const {
    return std::clamp<int64_t>(static_cast<int64_t>(labels[i]), 0, classes - 1);
  }
  /// Returns the log of the sum of exp(logits).
  double log_sum(int64_t i) const {
    double top = logits[at(i, 0)], sum = 0;
    for (int64_t k = 1; k < classes; ++k) top = std::max(top, logits[at(i, k)]);
    for (int64_t k = 0; k < classes; ++k) sum += std::exp(logits[at(i, k)] - top);
    return top + std::log(sum);
  }
  /// Returns the weight of -log p[k] in the loss of a position with label y.
  double target(int64_t y, int64_t k) const {
    const double s = a.label_smoothing;
    return s / static_cast<double>(classes) * weight(k) + (k == y ? (1 - s) * weight(k) : 0.0);
  }
};

/// Sums: loss, and its divisor.
Rule softmax(const ops::SoftmaxCrossEntropyAttributes& a) {
  const auto run = [a](const RuleCall& call) {
    const Softmax soft(a, call.in[0]);
    for (int64_t i = 0; i < call.in[1].size(); ++i) {
      const int64_t y = soft.label(call.in[1], i);
      const double log_sum = soft.log_sum(i);
      for (int64_t k = 0; k < soft.classes; ++k)
        call.sums[0] += soft.target(y, k) * (log_sum - call.in[0][soft.at(i, k)]);
      call.sums[1] += a.mean_over == ops::MeanOver::labels ? 1 : soft.weight(y);
    }
  };
  const bool given = a.mean_over == ops::MeanOver::given;
  const auto finish = [scale = a.scale, given](const RuleCall& call) {
    const double all = given ? call.in[2][0] : call.sums[1];
    call.out[0][0] = scale * call.sums[0] / all;
    call.out[1][0] = all;
  };
  Rule rule{.run = run, .sums = 2, .finish = finish, .unbatched_in = {}, .unbatched_out = {0, 1}};
  if (given) rule.unbatched_in = {2};
  return rule;
}

Rule label_weights(const ops::LabelWeights& op) {
  const auto run = [weights = op.weights()](const RuleCall& call) {
    for (int64_t i = 0; i < call.in[0].size(); ++i)
      call.sums[0] += static_cast<double>(weights[static_cast<size_t>(
          std::clamp<int64_t>(static_cast<int64_t>(call.in[0][i]), 0, std::ssize(weights) - 1))]);
  };
  const auto finish = [](const RuleCall& call) { call.out[0][0] = call.sums[0]; };
  return {.run = run, .sums = 1, .finish = finish, .unbatched_in = {}, .unbatched_out = {0}};
}

Rule softmax_grad(const ops::SoftmaxCrossEntropyAttributes& a) {
  return {.run = [a](const RuleCall& call) {
    const Softmax soft(a, call.in[0]);
    for (int64_t i = 0; i < call.in[1].size(); ++i) {
      const int64_t y = soft.label(call.in[1], i);
      const double log_sum = soft.log_sum(i);
      double total = 0;  // sum of the targets: d(-log p[k])/dx[j] = p[j] - [j == k]
      for (int64_t k = 0; k < soft.classes; ++k) total += soft.target(y, k);
      for (int64_t k = 0; k < soft.classes; ++k) {
        const int64_t at = soft.at(i, k);
        call.out[0][at] = a.scale / call.in[2][0] *
                          (total * std::exp(call.in[0][at] - log_sum) - soft.target(y, k));
      }
    }
  }};
}

double loss_of(const ops::PointwiseLossAttributes& a, double x, double t) {
  const double d = x - t, delta = a.delta;
  switch (a.kind) {
    case ops::PointwiseLossKind::mse: return d * d;
    case ops::PointwiseLossKind::mae: return std::abs(d);
    case ops::PointwiseLossKind::huber:
      return std::abs(d) < delta ? 0.5 * d * d : delta * (std::abs(d) - 0.5 * delta);
    case ops::PointwiseLossKind::bce_with_logits:
      return (1 - t) * x + (1 + (a.pos_weight - 1) * t) *
                               (std::log1p(std::exp(-std::abs(x))) + std::max(-x, 0.0));
  }
  return 0;
}

double slope_of(const ops::PointwiseLossAttributes& a, double x, double t) {
  const double d = x - t, delta = a.delta;
  switch (a.kind) {
    case ops::PointwiseLossKind::mse: return 2 * d;
    case ops::PointwiseLossKind::mae: return d > 0 ? 1 : d < 0 ? -1 : 0;
    case ops::PointwiseLossKind::huber: return std::clamp(d, -delta, delta);
    case ops::PointwiseLossKind::bce_with_logits:
      return 1 - t - (1 + (a.pos_weight - 1) * t) / (1 + std::exp(x));
  }
  return 0;
}

/// Returns the elements of the replica's whole batch.
double batch_elements(const RuleCall& call) {
  return static_cast<double>(call.step.batch) *
         static_cast<double>(call.in[0].shape().elements_from(1));
}

Rule pointwise(const ops::PointwiseLossAttributes& a) {
  const auto run = [a](const RuleCall& call) {
    for (int64_t i = 0; i < call.in[0].size(); ++i)
      call.sums[0] += loss_of(a, call.in[0][i], call.in[1][i]);
  };
  const auto finish = [scale = a.scale](const RuleCall& call) {
    call.out[0][0] = scale * call.sums[0] / batch_elements(call);
  };
  return {.run = run, .sums = 1, .finish = finish, .unbatched_in = {}, .unbatched_out = {0}};
}

Rule pointwise_grad(const ops::PointwiseLossAttributes& a) {
  return {.run = [a](const RuleCall& call) {
    const double factor = a.scale / batch_elements(call);
    for (int64_t i = 0; i < call.out[0].size(); ++i)
      call.out[0][i] = factor * slope_of(a, call.in[0][i], call.in[1][i]);
  }};
}

Rule gaussian_kl(const ops::GaussianKL& op) {
  const auto run = [](const RuleCall& call) {
    for (int64_t i = 0; i < call.in[0].size(); ++i) {
      const double mean = call.in[0][i], logvar = call.in[1][i];
      call.sums[0] += 0.5 * (mean * mean + std::exp(logvar) - 1 - logvar);
    }
  };
  const auto finish = [scale = op.scale()](const RuleCall& call) {
    call.out[0][0] = scale * call.sums[0] / static_cast<double>(call.step.batch);
  };
  return {.run = run, .sums = 1, .finish = finish, .unbatched_in = {}, .unbatched_out = {0}};
}

Rule gaussian_kl_grad(const ops::GaussianKLGrad& op) {
  return {.run = [scale = op.scale()](const RuleCall& call) {
    const double factor = scale / static_cast<double>(call.step.batch);
    for (int64_t i = 0; i < call.in[0].size(); ++i) {
      call.out[0][i] = factor * call.in[0][i];
      call.out[1][i] = factor * 0.5 * (std::exp(call.in[1][i]) - 1);
    }
  }};
}

}  // namespace

void register_loss_rules(RuleTable& table) {
  table.add<ops::SoftmaxCrossEntropy>(
      [](const ops::SoftmaxCrossEntropy& op) { return softmax(op.loss()); });
  table.add<ops::SoftmaxCrossEntropyGrad>(
      [](const ops::SoftmaxCrossEntropyGrad& op) { return softmax_grad(op.loss()); });
  table.add<ops::LabelWeights>(label_weights);
  table.add<ops::PointwiseLoss>([](const ops::PointwiseLoss& op) { return pointwise(op.loss()); });
  table.add<ops::PointwiseLossGrad>(
      [](const ops::PointwiseLossGrad& op) { return pointwise_grad(op.loss()); });
  table.add<ops::GaussianKL>(gaussian_kl);
  table.add<ops::GaussianKLGrad>(gaussian_kl_grad);
}

}  // namespace tutti::backend
