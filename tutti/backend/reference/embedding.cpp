#include "tutti/ops/sequence/embedding.h"

#include <cmath>
#include <map>

#include "tutti/backend/reference/rules.h"

namespace tutti::backend {
namespace {

/// Calls f(sample, row among this rank's rows, factor) for each row that the bags name.
template <class F>
void for_each_named_row(const PlainTensor& rows, const PlainTensor* weights, const ops::Bag& bag,
                        F f) {
  const int64_t fields = rows.shape()[1];
  for (int64_t n = 0; n < rows.shape()[0]; ++n) {
    const auto number = [&](int64_t c) {
      return static_cast<int64_t>(rows[n * fields + bag.first + c]);
    };
    int64_t named = 0;
    for (int64_t c = 0; c < bag.count; ++c) named += number(c) >= 0;
    for (int64_t c = 0; c < bag.count; ++c) {
      if (number(c) < 0) continue;
      double factor = weights ? (*weights)[n * bag.count + c] : 1;
      if (bag.mean) factor /= static_cast<double>(named);
      f(n, number(c) - bag.first_row, factor);
    }
  }
}

void look_up(const RuleCall& call, const ops::Bag& bag) {
  const PlainTensor& table = call.in[0];
  PlainTensor& y = call.out[0];
  const int64_t here = table.shape()[0], width = table.shape()[1];
  y.fill(0);
  for_each_named_row(call.in[1], bag.weighted ? &call.in[2] : nullptr, bag,
                     [&](int64_t n, int64_t row, double factor) {
                       if (row < 0 || row >= here) return;
                       for (int64_t i = 0; i < width; ++i)
                         y[n * width + i] += factor * table[row * width + i];
                     });
}

void descend(const RuleCall& call, const ops::Bag& bag, const ops::TableRule& rule) {
  const double lr = call.in[0][0], scale = call.in[1][0];
  PlainTensor& table = call.in[2];
  const size_t dy = rule.kind == ops::TableRule::Kind::sgd ? 3 : 4;
  const int64_t here = table.shape()[0], width = table.shape()[1];
  std::map<int64_t, std::vector<double>> gradients;  // by row
  for_each_named_row(call.in[dy + 1], bag.weighted ? &call.in[dy + 2] : nullptr, bag,
                     [&](int64_t n, int64_t row, double factor) {
                       if (row < 0 || row >= here) return;
                       std::vector<double>& g = gradients[row];
                       g.resize(static_cast<size_t>(width));
                       for (int64_t i = 0; i < width; ++i)
                         g[static_cast<size_t>(i)] += scale * factor * call.in[dy][n * width + i];
                     });
  for (const auto& [row, g] : gradients) {
    double squares = 0;
    for (const double x : g) squares += x * x / static_cast<double>(width);
    if (rule.kind == ops::TableRule::Kind::rowwise_adagrad) call.in[3][row] += squares;
    for (int64_t i = 0; i < width; ++i) {
      const double x = g[static_cast<size_t>(i)];
      double step = lr * x;
      if (rule.kind == ops::TableRule::Kind::adagrad) call.in[3][row * width + i] += x * x;
      if (rule.kind != ops::TableRule::Kind::sgd) {
        const bool by_row = rule.kind == ops::TableRule::Kind::rowwise_adagrad;
        const double sum = call.in[3][by_row ? row : row * width + i];
        step /= std::sqrt(sum) + static_cast<double>(rule.epsilon);
      }
      table[row * width + i] -= step;
    }
  }
}

}  // namespace

void register_embedding_rules(RuleTable& table) {
  table.add<ops::EmbeddingBag>(
      [](const ops::EmbeddingBag& op, const RuleCall& c) { look_up(c, op.bag()); });
  table.add<ops::TableUpdate>(
      [](const ops::TableUpdate& op, const RuleCall& c) { descend(c, op.bag(), op.rule()); });
}

}  // namespace tutti::backend
