#include "tutti/ops/resize.h"

#include "tutti/backend/reference/rules.h"

namespace tutti::backend {
namespace {

/// Returns the element of x [N, C, spatial...] that element yi of y shows.
int64_t shown(const ops::ResizeAttributes& a, const Shape& x, const Shape& y, int64_t yi) {
  int64_t xi = 0, stride = 1;
  for (int d = y.rank() - 1; d >= 0; --d) {
    const int64_t at = yi % y[d];
    yi /= y[d];
    const auto i = static_cast<size_t>(std::max(d - 2, 0));
    xi += (d < 2 ? at : (a.first[i] + at) / a.factor[i]) * stride;
    stride *= x[d];
  }
  return xi;
}

}  // namespace

void register_resize_rules(RuleTable& table) {
  table.add<ops::Resize>([](const ops::Resize& op, const RuleCall& call) {
    const PlainTensor& x = call.in[0];
    PlainTensor& y = call.out[0];
    for (int64_t i = 0; i < y.size(); ++i) y[i] = x[shown(op.resize(), x.shape(), y.shape(), i)];
  });
  table.add<ops::ResizeGrad>([](const ops::ResizeGrad& op, const RuleCall& call) {
    const PlainTensor& dy = call.in[0];
    PlainTensor& dx = call.out[0];
    dx.fill(0);
    for (int64_t i = 0; i < dy.size(); ++i)
      dx[shown(op.resize(), dx.shape(), dy.shape(), i)] += dy[i];
  });
}

}  // namespace tutti::backend
