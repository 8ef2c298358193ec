#include "tutti/ops/interaction.h"

#include "tutti/backend/reference/rules.h"

namespace tutti::backend {
namespace {

void multiply_pairs(const ops::Interaction& op, const RuleCall& call) {
  const auto [width, itself] = op.interaction();
  const PlainTensor& x = call.in[0];
  PlainTensor& y = call.out[0];
  const ops::FeaturePairs pairs{x.shape()[1] / width, itself};
  for (int64_t n = 0; n < x.shape()[0]; ++n)
    for (int64_t i = 0; i < pairs.features; ++i)
      for (int64_t j = 0; j < (itself ? i + 1 : i); ++j) {
        double sum = 0;
        for (int64_t d = 0; d < width; ++d)
          sum += x[(n * pairs.features + i) * width + d] * x[(n * pairs.features + j) * width + d];
        y[n * pairs.count() + pairs.place(i, j)] = sum;
      }
}

void give_pairs_back(const ops::InteractionGrad& op, const RuleCall& call) {
  const auto [width, itself] = op.interaction();
  const PlainTensor &dy = call.in[0], &x = call.in[1];
  PlainTensor& dx = call.out[0];
  const ops::FeaturePairs pairs{x.shape()[1] / width, itself};
  dx.fill(0);
  for (int64_t n = 0; n < x.shape()[0]; ++n)
    for (int64_t i = 0; i < pairs.features; ++i)
      for (int64_t j = 0; j < (itself ? i + 1 : i); ++j)
        for (int64_t d = 0; d < width; ++d) {
          const double g = dy[n * pairs.count() + pairs.place(i, j)];
          const int64_t a = (n * pairs.features + i) * width + d,
                        b = (n * pairs.features + j) * width + d;
          dx[a] += g * x[b];
          dx[b] += g * x[a];
        }
}

}  // namespace

void register_interaction_rules(RuleTable& table) {
  table.add<ops::Interaction>(multiply_pairs);
  table.add<ops::InteractionGrad>(give_pairs_back);
}

}  // namespace tutti::backend
