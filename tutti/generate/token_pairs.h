#pragma once
// Generates tasks for models that make one sequence from another: copy, reverse or sort it. They
// are token files of documents (text/token_file.h): SOURCE has sequences of uniformly drawn
// symbols, with every length up to the longest; TARGET has the expected results.

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace tutti::generate {

/// Test sequences start at this index.
inline constexpr int64_t kFirstTestSequence = 1'000'000'000'000;

struct SequenceSpec {
  uint64_t seed = 1;
  std::string task = "copy";  ///< "copy", "reverse" or "sort"
  int64_t symbols = 16;       ///< number of tokens; the end token comes next
  int64_t longest = 16;
};

/// Generates a sequence: a pure function of both arguments.
std::vector<int32_t> generate_sequence(const SequenceSpec& spec, int64_t index);
/// Returns the task's result. ConfigError for an unknown task.
std::vector<int32_t> asked_of(const SequenceSpec& spec, std::vector<int32_t> sequence);

/// Writes `count` sequences from `first` on, and the expected results. IoError.
void write_sequences(const std::filesystem::path& source, const std::filesystem::path& target,
                     const SequenceSpec& spec, int64_t first, int64_t count);

}  // namespace tutti::generate
