#pragma once
// Tasks for models that make a sequence from another one: to copy it, to turn it round, to sort it.
// Token files of documents (text/token_file.h): in SOURCE sequences of symbols, drawn evenly, of
// every length up to the longest; in TARGET what is asked of them.

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace tutti::data {

/// Test sequences are those from here on.
inline constexpr int64_t kFirstTestSequence = 1'000'000'000'000;

struct SequenceSpec {
  uint64_t seed = 1;
  std::string task = "copy";  ///< "copy", "reverse" or "sort"
  int64_t symbols = 16;       ///< tokens; the end token comes behind them
  int64_t longest = 16;
};

/// A pure function of both.
std::vector<int32_t> generate_sequence(const SequenceSpec& spec, int64_t index);
/// What the task makes of it. ConfigError for one that is not known.
std::vector<int32_t> asked_of(const SequenceSpec& spec, std::vector<int32_t> sequence);

/// `count` sequences from `first` on, and what is asked of them. IoError.
void write_sequences(const std::filesystem::path& source, const std::filesystem::path& target,
                     const SequenceSpec& spec, int64_t first, int64_t count);

}  // namespace tutti::data
