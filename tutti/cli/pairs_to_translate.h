#pragma once
// What `tutti translate` reads: sources from a text or a data set, with its targets, as tokens.

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "tutti/data/dataset.h"
#include "tutti/data/text/tokenizer.h"
#include "tutti/train/config.h"

namespace tutti {

/// One of text, file and split.
struct SourcesGiven {
  std::string text, file, split;
  int64_t samples = 0;  ///< only the first ones; 0: all
};

struct SequencePairs {
  std::vector<std::vector<int32_t>> sources;   ///< empty ones where a line is
  std::vector<std::vector<int32_t>> targets;   ///< without the end token; empty: not known
  int32_t end_token = 0;                       ///< of targets
  std::unique_ptr<data::Tokenizer> tokenizer;  ///< of targets; null: tokens are numbers
  std::unique_ptr<data::Dataset> fields;       ///< what samples are, for a network

  /// On one line; numbers where no tokenizer is known.
  std::string text_of_target(std::span<const int32_t> tokens) const;
  /// What BLEU counts: words of the text, or tokens.
  std::vector<std::string> words_of_target(std::span<const int32_t> tokens) const;
};

/// With the tokenizers of the run that `weights` lie in. ConfigError for a source that data.window
/// has no room for, where no tokenizer is known, or where the data set's is another one.
SequencePairs sequence_pairs(const SourcesGiven& given, const std::filesystem::path& weights,
                             const RunConfig& config);

}  // namespace tutti
