#include "tutti/ops/batch_norm.h"

#include <algorithm>
#include <cmath>
#include <optional>

#include "tutti/backend/reference/rules.h"
#include "tutti/ops/parts.h"

namespace tutti::backend {
namespace {

/// Returns the channel of an element of [N, C, ...].
int64_t channel_of(const PlainTensor& y, int64_t i) {
  return i / y.shape().elements_from(2) % y.extent(1);
}

double& sum_at(const RuleCall& call, int64_t i) { return call.sums[static_cast<size_t>(i)]; }

/// Returns the number of values of a channel in the replica's whole batch.
double values_per_channel(const RuleCall& call, const PlainTensor& y) {
  return static_cast<double>(call.step.batch) * static_cast<double>(y.shape().elements_from(2));
}

struct BatchMoments {
  double count, mean, variance;
};

/// Updates a channel's running averages, inputs `first` and the next, and writes mean and inv_std.
void end_statistics(const ops::NormStatistics& statistics, const BatchMoments& batch,
                    const RuleCall& call, size_t first, int64_t c) {
  const auto momentum = static_cast<double>(statistics.momentum),
             epsilon = static_cast<double>(statistics.epsilon);
  double &mean = call.in[first][c], &variance = call.in[first + 1][c];
  if (momentum > 0) {  // otherwise a batch that is not finite would change them
    mean += momentum * (batch.mean - mean);
    if (batch.count > 1)
      variance += momentum * (batch.variance * batch.count / (batch.count - 1) - variance);
  }
  call.out[0][c] = statistics.running ? mean : batch.mean;
  call.out[1][c] = 1 / std::sqrt((statistics.running ? variance : batch.variance) + epsilon);
}

/// Sums per channel: y, y^2.
Rule stats(const ops::BatchNormStats& op, const KernelRequest& request) {
  const int64_t channels = request.in[0].shape[1];
  const auto run = [](const RuleCall& call) {
    const PlainTensor& y = call.in[0];
    for (int64_t i = 0; i < y.size(); ++i) {
      const int64_t c = channel_of(y, i);
      sum_at(call, c) += y[i];
      sum_at(call, y.extent(1) + c) += y[i] * y[i];
    }
  };
  const auto finish = [channels, statistics = op.statistics()](const RuleCall& call) {
    const double m = values_per_channel(call, call.in[0]);
    for (int64_t c = 0; c < channels; ++c) {
      const double mean = sum_at(call, c) / m;
      const double var = std::max(sum_at(call, channels + c) / m - mean * mean, 0.0);
      end_statistics(statistics, {m, mean, var}, call, 1, c);
    }
  };
  return {.run = run,
          .sums = static_cast<size_t>(2 * channels),
          .finish = finish,
          .unbatched_in = {1, 2},
          .unbatched_out = {0, 1}};
}

/// Returns the finish of `stats` without running averages.
Rule moments(const ops::BatchNormMoments&, const KernelRequest& request) {
  const int64_t channels = request.in[0].shape[1];
  Rule rule = stats(ops::BatchNormStats(), request);
  rule.finish = [channels](const RuleCall& call) {
    const double m = values_per_channel(call, call.in[0]);
    for (int64_t c = 0; c < channels; ++c) {
      const double mean = sum_at(call, c) / m;
      call.out[0][c] = mean;
      call.out[1][c] = std::max(sum_at(call, channels + c) / m - mean * mean, 0.0);
    }
  };
  rule.unbatched_in.clear();
  return rule;
}

/// Merges by the sums of all values and of their squares.
Rule merge_moments(const ops::MergeMoments& op) {
  return {.run = [op](const RuleCall& call) {
    for (int64_t c = 0; c < call.out[0].size(); ++c) {
      double count = 0, sum = 0, squares = 0;
      for (size_t r = 0; r < op.group().counts.size(); ++r) {
        const double mean = call.in[2 + 2 * r][c], variance = call.in[3 + 2 * r][c];
        const auto n = static_cast<double>(op.group().counts[r]);
        count += n;
        sum += n * mean;
        squares += n * (variance + mean * mean);
      }
      const double mean = sum / count, variance = std::max(squares / count - mean * mean, 0.0);
      end_statistics(op.statistics(), {count, mean, variance}, call, 0, c);
    }
  }};
}

Rule apply(bool relu, bool residual) {
  return {.run = [relu, residual](const RuleCall& call) {
    const PlainTensor &y = call.in[0], &mean = call.in[1], &inv_std = call.in[2],
                      &gamma = call.in[3], &beta = call.in[4];
    for (int64_t i = 0; i < y.size(); ++i) {
      const int64_t c = channel_of(y, i);
      double z = gamma[c] * (y[i] - mean[c]) * inv_std[c] + beta[c];
      if (residual) z += call.in[5][i];
      call.out[0][i] = relu ? std::max(z, 0.0) : z;
    }
  }};
}

Rule inference(const ops::BatchNormInference& op) {
  return {.run = [rule = apply(op.relu(), op.residual()),
                  epsilon = op.epsilon()](const RuleCall& call) {
    PlainTensor& var = call.in[2];  // becomes inv_std
    for (int64_t c = 0; c < var.size(); ++c) var[c] = 1 / std::sqrt(var[c] + epsilon);
    rule.run(call);
  }};
}

/// Returns inv_std from itself or, with an epsilon, from the variance.
PlainTensor inverse_deviations(PlainTensor second, std::optional<float> epsilon) {
  if (epsilon)
    for (int64_t c = 0; c < second.size(); ++c)
      second[c] = 1 / std::sqrt(second[c] + static_cast<double>(*epsilon));
  return second;
}

/// Sums per channel: g * xhat (dgamma), g (dbeta).
Rule grad_reduce(const ops::BatchNormGradReduce& op, const KernelRequest& request) {
  const int64_t channels = request.in[0].shape[1];
  const auto run = [relu = op.relu(), two = op.two(),
                    epsilon = op.epsilon()](const RuleCall& call) {
    const PlainTensor &dz = call.in[0], &y = call.in[1], &mean = call.in[2];
    const PlainTensor inv_std = inverse_deviations(call.in[3], epsilon);
    for (int64_t i = 0; i < dz.size(); ++i) {
      const int64_t c = channel_of(y, i);
      double g = dz[i];
      if (two) g += call.in[relu ? 5 : 4][i];
      if (relu && !(call.in[4][i] > 0)) g = 0;
      call.out[0][i] = g;
      sum_at(call, c) += g * (y[i] - mean[c]) * inv_std[c];
      sum_at(call, y.extent(1) + c) += g;
    }
  };
  const auto finish = [channels](const RuleCall& call) {
    for (int64_t c = 0; c < channels; ++c) {
      call.out[1][c] = sum_at(call, c);
      call.out[2][c] = sum_at(call, channels + c);
    }
  };
  return {.run = run,
          .sums = static_cast<size_t>(2 * channels),
          .finish = finish,
          .unbatched_in = {},
          .unbatched_out = {1, 2}};
}

Rule grad_scale(const ops::BatchNormGradScale& op) {
  return {.run = [epsilon = op.epsilon()](const RuleCall& call) {
    const PlainTensor &g = call.in[0], &gamma = call.in[2];
    const PlainTensor inv_std = inverse_deviations(call.in[1], epsilon);
    for (int64_t i = 0; i < g.size(); ++i) {
      const int64_t c = channel_of(g, i);
      call.out[0][i] = gamma[c] * inv_std[c] * g[i];
    }
  }};
}

void grad_apply(const RuleCall& call) {
  const PlainTensor &g = call.in[0], &y = call.in[1], &mean = call.in[2], &inv_std = call.in[3],
                    &gamma = call.in[4];
  const PlainTensor &dgamma = call.in[5], &dbeta = call.in[6];
  const double m = values_per_channel(call, y);
  for (int64_t i = 0; i < g.size(); ++i) {
    const int64_t c = channel_of(y, i);
    const double xhat = (y[i] - mean[c]) * inv_std[c];
    call.out[0][i] = gamma[c] * inv_std[c] * (g[i] - dbeta[c] / m - xhat * dgamma[c] / m);
  }
}

}  // namespace

void register_batch_norm_rules(RuleTable& table) {
  table.add<ops::BatchNormStats>(stats);
  table.add<ops::BatchNormMoments>(moments);
  table.add<ops::MergeMoments>(merge_moments);
  table.add<ops::BatchNormApply>(
      [](const ops::BatchNormApply& op) { return apply(op.relu(), op.residual()); });
  table.add<ops::BatchNormInference>(inference);
  table.add<ops::BatchNormGradReduce>(grad_reduce);
  table.add<ops::BatchNormGradApply>(grad_apply);
  table.add<ops::BatchNormGradScale>(grad_scale);
}

}  // namespace tutti::backend
