#include "tutti/ops/group_norm.h"

#include <cmath>

#include "tutti/backend/reference/rules.h"

namespace tutti::backend {
namespace {

/// Visits the groups of all samples; a group's elements follow each other in row-major order.
struct Group {
  int64_t first, count, positions;
  double mean = 0, inverse = 0;  ///< 1 / sqrt(variance + epsilon)

  Group(const ops::GroupNormAttributes& a, const PlainTensor& x, int64_t number)
      : count(x.shape().elements_from(1) / a.groups), positions(x.shape().elements_from(2)) {
    first = number * count;
    for (int64_t i = first; i < first + count; ++i) mean += x[i] / static_cast<double>(count);
    double squares = 0;
    for (int64_t i = first; i < first + count; ++i) squares += (x[i] - mean) * (x[i] - mean);
    inverse = 1 / std::sqrt(squares / static_cast<double>(count) + static_cast<double>(a.epsilon));
  }
  double normalised(double x) const { return (x - mean) * inverse; }
};

void normalise_groups(const ops::GroupNorm& op, const RuleCall& call) {
  const PlainTensor &x = call.in[0], &gamma = call.in[1], &beta = call.in[2];
  for (int64_t n = 0; n < x.shape()[0] * op.norm().groups; ++n) {
    const Group group(op.norm(), x, n);
    for (int64_t i = group.first; i < group.first + group.count; ++i) {
      const int64_t c = i / group.positions % x.shape()[1];
      call.out[0][i] = group.normalised(x[i]) * gamma[c] + beta[c];
    }
  }
}

/// The sums are those of dgamma, then of dbeta.
void add_group_gradients(const ops::GroupNormAttributes& a, const RuleCall& call) {
  const PlainTensor &dy = call.in[0], &x = call.in[1], &gamma = call.in[2];
  const int64_t channels = x.shape()[1];
  for (int64_t n = 0; n < x.shape()[0] * a.groups; ++n) {
    const Group group(a, x, n);
    const auto count = static_cast<double>(group.count);
    double all = 0, along = 0;  // means of g = dy * gamma, and of g times the normalised x
    for (int64_t i = group.first; i < group.first + group.count; ++i) {
      const int64_t c = i / group.positions % channels;
      const double z = group.normalised(x[i]);
      all += dy[i] * gamma[c] / count;
      along += dy[i] * gamma[c] * z / count;
      call.sums[static_cast<size_t>(c)] += dy[i] * z;
      call.sums[static_cast<size_t>(channels + c)] += dy[i];
    }
    for (int64_t i = group.first; i < group.first + group.count; ++i) {
      const int64_t c = i / group.positions % channels;
      call.out[0][i] = group.inverse * (dy[i] * gamma[c] - all - group.normalised(x[i]) * along);
    }
  }
}

Rule group_norm_grad_rule(const ops::GroupNormGrad& op, const KernelRequest& request) {
  const int64_t channels = request.in[1].shape[1];
  return {.run = [a = op.norm()](const RuleCall& c) { add_group_gradients(a, c); },
          .sums = 2 * static_cast<size_t>(channels),
          .finish =
              [channels](const RuleCall& c) {
                for (int64_t i = 0; i < 2 * channels; ++i)
                  c.out[i < channels ? 1 : 2][i % channels] = c.sums[static_cast<size_t>(i)];
              },
          .unbatched_in = {},
          .unbatched_out = {1, 2}};
}

}  // namespace

void register_group_norm_rules(RuleTable& table) {
  table.add<ops::GroupNorm>(normalise_groups);
  table.add<ops::GroupNormGrad>(group_norm_grad_rule);
}

}  // namespace tutti::backend
