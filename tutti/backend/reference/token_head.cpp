#include <algorithm>
#include <cmath>
#include <vector>

#include "tutti/backend/reference/rules.h"
#include "tutti/ops/sequence/token_head.h"

namespace tutti::backend {
namespace {

double rounded(double value, DType type) {
  return type == DType::bf16
             ? static_cast<double>(static_cast<float>(bf16(static_cast<float>(value))))
             : value;
}

/// One position: its channels and its logits.
struct HeadPosition {
  const PlainTensor &x, &w;
  DType type;                                      // type of x: w and logits are rounded to it
  int64_t channels, vocabulary, positions, first;  // first: x's first channel
  std::vector<double> logits;

  HeadPosition(const RuleCall& call, int64_t i, DType of)
      : x(call.in[0]), w(call.in[1]), type(of), channels(x.shape()[1]), vocabulary(w.shape()[0]),
        positions(x.shape()[2]), first(i / positions * channels * positions + i % positions),
        logits(static_cast<size_t>(vocabulary)) {
    for (int64_t k = 0; k < vocabulary; ++k) {
      double sum = 0;
      for (int64_t c = 0; c < channels; ++c) sum += weight(k, c) * x[at(c)];
      logits[static_cast<size_t>(k)] = rounded(sum, type);
    }
  }
  double weight(int64_t k, int64_t c) const { return rounded(w[k * channels + c], type); }
  int64_t at(int64_t channel) const { return first + channel * positions; }
  double log_sum() const {
    const double top = *std::ranges::max_element(logits);
    double sum = 0;
    for (const double v : logits) sum += std::exp(v - top);
    return top + std::log(sum);
  }
  double mean() const {
    double sum = 0;
    for (const double v : logits) sum += v;
    return sum / static_cast<double>(vocabulary);
  }
};

void add_gradients(const ops::TokenHead& op, const RuleCall& call, const HeadPosition& position,
                   size_t label) {
  const double s = op.head().loss.label_smoothing, log_sum = position.log_sum(),
               factor = static_cast<double>(op.head().loss.scale) / call.in[3][0];
  for (int64_t k = 0; k < position.vocabulary; ++k) {
    const auto token = static_cast<size_t>(k);
    const double of_logit = rounded(
        factor * (std::exp(position.logits[token] - log_sum) -
                  s / static_cast<double>(position.vocabulary) - (token == label ? 1 - s : 0)),
        position.type);
    for (int64_t c = 0; c < position.channels; ++c) {
      if (op.head().data)
        call.out[static_cast<size_t>(op.data_output())][position.at(c)] +=
            of_logit * position.weight(k, c);
      if (op.head().weights)
        call.out[static_cast<size_t>(op.weights_output())][k * position.channels + c] +=
            of_logit * position.x[position.at(c)];
    }
  }
}

/// `type`: x's type.
void token_head(const ops::TokenHead& op, const RuleCall& call, DType type) {
  for (PlainTensor& out : call.out)
    for (int64_t i = 0; i < out.size(); ++i) out[i] = 0;
  const double s = op.head().loss.label_smoothing;
  double sum = 0;
  for (int64_t i = 0; i < call.in[2].size(); ++i) {
    const HeadPosition position(call, i, type);
    const double label = call.in[2][i];
    if (label < 0 || label >= static_cast<double>(position.vocabulary)) continue;
    const auto y = static_cast<size_t>(label);
    const double log_sum = position.log_sum();
    call.out[1][i] = log_sum - position.logits[y];
    sum += (1 - s) * call.out[1][i] + s * (log_sum - position.mean());
    const auto best = std::ranges::max_element(position.logits);  // the first of equal ones
    if (op.head().hits)
      call.out[static_cast<size_t>(op.hits_output())][i] =
          best - position.logits.begin() == static_cast<int64_t>(y);
    if (op.head().trains()) add_gradients(op, call, position, y);
  }
  call.out[0][0] = static_cast<double>(op.head().loss.scale) * sum / call.in[3][0];
}

}  // namespace

void register_token_head_rule(RuleTable& table) {
  table.add<ops::TokenHead>([](const ops::TokenHead& op, const KernelRequest& r) -> Rule {
    return {.run = [op, type = r.in[0].dtype](const RuleCall& c) { token_head(op, c, type); }};
  });
}

}  // namespace tutti::backend
