#include "tutti/train/infer/token_choice.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "tutti/base/error.h"

namespace tutti::train {
namespace {

struct Candidate {
  int32_t token = 0;
  double weight = 0;  // first the logit, then the probability
};

}  // namespace

int32_t choose_token(std::span<const float> logits, const TokenChoice& choice, double uniform) {
  std::vector<Candidate> candidates;
  for (size_t t = 0; t < logits.size(); ++t)
    if (!std::isnan(logits[t]))
      candidates.push_back({static_cast<int32_t>(t), static_cast<double>(logits[t])});
  if (candidates.empty())
    throw NumericError(fmt::format(
        "no logit of {} is a number: the weights are not finite; take an earlier checkpoint",
        logits.size()));
  const auto kept = static_cast<std::ptrdiff_t>(
      choice.temperature == 0 ? 1
      : choice.top_k > 0      ? std::min<int64_t>(choice.top_k, std::ssize(candidates))
                              : std::ssize(candidates));
  std::ranges::partial_sort(candidates, candidates.begin() + kept,
                            [](const auto& a, const auto& b) {
                              return a.weight != b.weight ? a.weight > b.weight : a.token < b.token;
                            });
  candidates.resize(static_cast<size_t>(kept));
  if (kept == 1) return candidates.front().token;
  const double greatest = candidates.front().weight;
  double sum = 0;
  for (Candidate& one : candidates) {
    one.weight = std::exp((one.weight - greatest) / choice.temperature);
    sum += one.weight;
  }
  double share = 0;
  size_t last = 0;
  for (; last + 1 < candidates.size(); ++last) {
    share += candidates[last].weight;
    if (share >= choice.top_p * sum) break;
  }
  candidates.resize(last + 1);
  sum = 0;
  for (const Candidate& one : candidates) sum += one.weight;
  double left = uniform * sum;
  for (const Candidate& one : candidates) {
    left -= one.weight;
    if (left < 0) return one.token;
  }
  return candidates.back().token;
}

}  // namespace tutti::train
