#include "tutti/ops/embedding.h"

#include "tutti/backend/reference/rules.h"

namespace tutti {
namespace {

/// f(sample, row) for each number of the bag's columns.
template <class F>
void for_each_row(const PlainTensor& rows, const BagColumns& columns, F f) {
  const int64_t width = rows.shape()[1];
  for (int64_t n = 0; n < rows.shape()[0]; ++n)
    for (int64_t c = columns.first; c < columns.first + columns.count; ++c)
      f(n, static_cast<int64_t>(rows[n * width + c]));
}

void look_up(const RuleCall& call, const BagColumns& columns) {
  const PlainTensor& table = call.in[0];
  PlainTensor& y = call.out[0];
  const int64_t width = table.shape()[1];
  y.fill(0);
  for_each_row(call.in[1], columns, [&](int64_t n, int64_t row) {
    for (int64_t i = 0; i < width; ++i) y[n * width + i] += table[row * width + i];
  });
}

void descend(const RuleCall& call, const BagColumns& columns) {
  const double rate = call.in[0][0] * call.in[1][0];
  PlainTensor& table = call.in[2];
  const PlainTensor& dy = call.in[3];
  const int64_t width = table.shape()[1];
  for_each_row(call.in[4], columns, [&](int64_t n, int64_t row) {
    for (int64_t i = 0; i < width; ++i) table[row * width + i] -= rate * dy[n * width + i];
  });
}

}  // namespace

Rule embedding_rule(const KernelRequest& request) {
  if (const auto* const op = dynamic_cast<const EmbeddingBag*>(request.op))
    return {.run = [columns = op->columns()](const RuleCall& c) { look_up(c, columns); }};
  if (const auto* const op = dynamic_cast<const TableUpdate*>(request.op))
    return {.run = [columns = op->columns()](const RuleCall& c) { descend(c, columns); }};
  return {};
}

}  // namespace tutti
