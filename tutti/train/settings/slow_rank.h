#pragma once
// Slows a rank down on purpose (run.slow, run.slow_sigma), to measure the cost of a late rank.

#include <cstdint>
#include <string>
#include <vector>

#include "tutti/config/config.h"

namespace tutti::train {

/// An entry of run.slow, "RANK:FACTOR". parse_slow() throws ConfigError for an invalid one.
struct SlowEntry {
  int rank = 0;
  double factor = 1;  ///< at least 1
};
std::vector<SlowEntry> parse_slow(const config::RunSection& run);

/// Returns texts for the record: "rank 1 by 3", "all by chance, sigma 0.2".
std::vector<std::string> slowed_words(const config::RunSection& run);

class SlowRank {
 public:
  /// An entry for a rank that does not exist, as in the smaller runs of a study, has no effect.
  SlowRank(const config::RunSection& run, int rank);
  /// Returns by how much longer than its computation a step, or a ticket's gradient, takes, as a
  /// multiple of the computing time. Each number has a draw of its own.
  double delay(int64_t number) const;

 private:
  double factor_ = 1;
  const double sigma_;
  const uint64_t seed_;
  const int rank_;
};

}  // namespace tutti::train
