#include "tutti/train/settings/slow_rank.h"

#include <algorithm>
#include <charconv>
#include <cmath>

#include "tutti/base/error.h"
#include "tutti/base/numeric/rng.h"

namespace tutti::train {
namespace {

SlowEntry slow_entry(const std::string& text) {
  SlowEntry entry;
  const char* const end = text.data() + text.size();
  const auto rank = std::from_chars(text.data(), end, entry.rank);
  const bool named = rank.ec == std::errc() && rank.ptr != end && *rank.ptr == ':';
  const auto factor =
      named ? std::from_chars(rank.ptr + 1, end, entry.factor) : std::from_chars_result{end, {}};
  if (!named || factor.ec != std::errc() || factor.ptr != end || entry.rank < 0 ||
      !(entry.factor >= 1 && entry.factor <= 1000))
    throw ConfigError(fmt::format(
        "run.slow: '{}' is not RANK:FACTOR, a rank and how many times as long as others it takes, "
        "1 to 1000, as in 1:3",
        text));
  return entry;
}

}  // namespace

std::vector<SlowEntry> parse_slow(const config::RunSection& run) {
  std::vector<SlowEntry> entries;
  for (const std::string& text : run.slow) {
    const SlowEntry entry = slow_entry(text);
    if (std::ranges::find(entries, entry.rank, &SlowEntry::rank) != entries.end())
      throw ConfigError(fmt::format("run.slow names rank {} twice", entry.rank));
    entries.push_back(entry);
  }
  return entries;
}

std::vector<std::string> slowed_words(const config::RunSection& run) {
  std::vector<std::string> words;
  for (const SlowEntry& entry : parse_slow(run))
    words.push_back(fmt::format("rank {} by {}", entry.rank, entry.factor));
  if (run.slow_sigma > 0) words.push_back(fmt::format("all by chance, sigma {}", run.slow_sigma));
  return words;
}

SlowRank::SlowRank(const config::RunSection& run, int rank)
    : sigma_(run.slow_sigma), seed_(static_cast<uint64_t>(run.seed)), rank_(rank) {
  for (const SlowEntry& entry : parse_slow(run))
    if (entry.rank == rank) factor_ = entry.factor;
}

double SlowRank::delay(int64_t number) const {
  double factor = factor_;
  if (sigma_ > 0) {
    Rng rng(seed_, Purpose::step_times,
            static_cast<uint64_t>(number) << 24 | static_cast<uint64_t>(rank_));
    factor *= std::exp(std::max(0.0, sigma_ * static_cast<double>(rng.normal())));
  }
  return factor - 1;
}

}  // namespace tutti::train
