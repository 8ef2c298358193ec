#include "tutti/ops/dense.h"

#include "tutti/backend/reference/rules.h"

namespace tutti::backend {
namespace {

/// Calls tap(x index, w index, y index) for every product of y = x * w^T.
template <class Tap>
void for_each_product(const PlainTensor& w, int64_t samples, Tap tap) {
  const int64_t outputs = w.extent(0), features = w.extent(1);
  for (int64_t n = 0; n < samples; ++n)
    for (int64_t k = 0; k < outputs; ++k)
      for (int64_t f = 0; f < features; ++f)
        tap(n * features + f, k * features + f, n * outputs + k);
}

void dense_forward(const RuleCall& call) {
  const PlainTensor &x = call.in[0], &w = call.in[1];
  PlainTensor& y = call.out[0];
  for (int64_t i = 0; i < y.size(); ++i)
    y[i] = call.in.size() > 2 ? call.in[2][i % y.extent(1)] : 0;
  for_each_product(w, x.extent(0),
                   [&](int64_t xi, int64_t wi, int64_t yi) { y[yi] += x[xi] * w[wi]; });
}

void dense_backward_data(const RuleCall& call) {
  const PlainTensor &dy = call.in[0], &w = call.in[1];
  PlainTensor& dx = call.out[0];
  dx.fill(0);
  for_each_product(w, dy.extent(0),
                   [&](int64_t xi, int64_t wi, int64_t yi) { dx[xi] += dy[yi] * w[wi]; });
}

void dense_backward_weights(const RuleCall& call) {
  const PlainTensor &x = call.in[0], &dy = call.in[1], &dw = call.out[0];
  for_each_product(dw, x.extent(0), [&](int64_t xi, int64_t wi, int64_t yi) {
    call.sums[static_cast<size_t>(wi)] += x[xi] * dy[yi];
  });
}

}  // namespace

void register_dense_rules(RuleTable& table) {
  table.add<ops::Dense>(dense_forward);
  table.add<ops::DenseBackwardData>(dense_backward_data);
  table.add<ops::DenseBackwardWeights>(
      [](const ops::DenseBackwardWeights&, const KernelRequest& r) -> Rule {
        return {.run = dense_backward_weights,
                .sums = static_cast<size_t>(r.out[0].elements()),
                .finish =
                    [](const RuleCall& call) {
                      for (int64_t i = 0; i < call.out[0].size(); ++i)
                        call.out[0][i] = call.sums[static_cast<size_t>(i)];
                    },
                .unbatched_in = {},
                .unbatched_out = {0}};
      });
}

}  // namespace tutti::backend
