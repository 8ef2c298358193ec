#pragma once
// Trains byte pairs: finds the pairs of neighbours whose merging shortens a text most.

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>

#include "tutti/data/text/tokenizer.h"

namespace tutti::data {

/// Counts how often each piece occurs in a text.
class PieceCounts {
 public:
  /// Adds a text that no piece crosses at either end (last_safe_cut).
  void add(std::string_view text);
  void add(const PieceCounts& other);
  const std::unordered_map<std::string, int64_t>& counts() const { return counts_; }

 private:
  std::unordered_map<std::string, int64_t> counts_;
};

/// Merges the most frequent pair (on ties, the one with the smallest numbers) until the vocabulary
/// has `vocabulary` tokens or no pair occurs twice. The tokens are the 256 bytes in GPT-2's order,
/// the results of merges, and last the end token. ConfigError below 257.
std::unique_ptr<Tokenizer> train_byte_pairs(const PieceCounts& pieces, int64_t vocabulary);

}  // namespace tutti::data
