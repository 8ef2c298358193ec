#include "tutti/train/infer/beam_search.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "tutti/base/error.h"

namespace tutti::train {
namespace {

/// Returns log of the sum of exp.
double log_of_sum(std::span<const float> logits) {
  const double top = *std::ranges::max_element(logits);
  double sum = 0;
  for (const float x : logits) sum += std::exp(static_cast<double>(x) - top);
  return top + std::log(sum);
}

}  // namespace

BeamSearch::BeamSearch(const BeamSettings& settings)
    : settings_(settings), followed_(1), last_(static_cast<size_t>(settings.size)),
      from_(static_cast<size_t>(settings.size)) {
  CHECK(settings_.size >= 1 && settings_.longest >= 1);
  std::ranges::fill(last_, settings_.end_token);
  std::iota(from_.begin(), from_.end(), 0);
}

double BeamSearch::score_of(double log_probability, int64_t tokens) const {
  return log_probability /
         std::pow((5 + static_cast<double>(tokens)) / 6, settings_.length_penalty);
}

/// Returns the best continuations, as many as may be needed: each sequence can end only once.
std::vector<BeamSearch::Candidate> BeamSearch::candidates(std::span<const float> logits) const {
  const size_t vocabulary = logits.size() / last_.size(),
               wanted = 2 * static_cast<size_t>(settings_.size);
  std::vector<Candidate> all;
  std::vector<int32_t> order(vocabulary);
  for (size_t row = 0; row < followed_.size(); ++row) {
    const std::span<const float> own = logits.subspan(row * vocabulary, vocabulary);
    const double log_sum = log_of_sum(own);
    if (!std::isfinite(log_sum))
      throw ConfigError("the network's logits are no numbers: its weights are of a failed run");
    std::iota(order.begin(), order.end(), 0);
    const auto some = static_cast<std::ptrdiff_t>(std::min(wanted, vocabulary));
    std::partial_sort(order.begin(), order.begin() + some, order.end(), [&](int32_t a, int32_t b) {
      const float x = own[static_cast<size_t>(a)], y = own[static_cast<size_t>(b)];
      return x > y || (x == y && a < b);
    });
    for (std::ptrdiff_t k = 0; k < some; ++k) {
      const int32_t token = order[static_cast<size_t>(k)];
      all.push_back({followed_[row].log_probability +
                         (static_cast<double>(own[static_cast<size_t>(token)]) - log_sum),
                     static_cast<int32_t>(row), token});
    }
  }
  std::ranges::stable_sort(all, std::ranges::greater{}, &Candidate::log_probability);
  all.resize(std::min(all.size(), wanted));
  return all;
}

void BeamSearch::end(const WrittenSequence& sequence, double log_probability, int64_t tokens) {
  const double score = score_of(log_probability, tokens);
  if (has_best_ && score <= best_.score) return;
  best_ = {sequence.tokens, log_probability, score};
  has_best_ = true;
}

void BeamSearch::advance(std::span<const float> logits) {
  CHECK(!done_ && logits.size() % last_.size() == 0 && !logits.empty());
  std::vector<WrittenSequence> next;
  std::ranges::fill(last_, settings_.end_token);
  std::iota(from_.begin(), from_.end(), 0);
  int64_t place = 0;
  for (const Candidate& c : candidates(logits)) {
    const WrittenSequence& before = followed_[static_cast<size_t>(c.row)];
    const bool among_best = place++ < settings_.size;
    if (c.token == settings_.end_token) {
      if (among_best) end(before, c.log_probability, std::ssize(before.tokens) + 1);
      continue;
    }
    if (std::ssize(next) == settings_.size) continue;
    from_[next.size()] = c.row;
    last_[next.size()] = c.token;
    WrittenSequence& longer = next.emplace_back(before);
    longer.tokens.push_back(c.token);
    longer.log_probability = c.log_probability;
  }
  followed_ = std::move(next);
  if (followed_.empty() || std::ssize(followed_.front().tokens) == settings_.longest) {
    for (const WrittenSequence& one : followed_)
      end(one, one.log_probability, std::ssize(one.tokens));
    followed_.clear();
  }
  // A longer sequence cannot have a greater probability, nor a score above that at full length.
  done_ = followed_.empty() ||
          (has_best_ &&
           (settings_.size == 1 ||
            best_.score >= score_of(followed_.front().log_probability, settings_.longest)));
}

}  // namespace tutti::train
