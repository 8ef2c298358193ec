#pragma once
// A rank that is made slow on purpose (run.slow, run.slow_sigma), to see what a late one costs.

#include <cstdint>
#include <string>
#include <vector>

#include "tutti/config/config.h"

namespace tutti {

/// An entry of run.slow, "RANK:FACTOR". ConfigError for what is none.
struct SlowEntry {
  int rank = 0;
  double factor = 1;  ///< at least 1
};
std::vector<SlowEntry> parse_slow(const RunSection& run);

/// As the record says it: "rank 1 by 3", "all by chance, sigma 0.2".
std::vector<std::string> slowed_words(const RunSection& run);

class SlowRank {
 public:
  /// An entry of a rank that there is not, as in the smaller runs of a study, slows nobody.
  SlowRank(const RunSection& run, int rank);
  /// By how much longer than its computation a step takes, or the gradient of a ticket: of a second
  /// of it so many. Each number is a draw of its own.
  double delay(int64_t number) const;

 private:
  double factor_ = 1;
  const double sigma_;
  const uint64_t seed_;
  const int rank_;
};

}  // namespace tutti
