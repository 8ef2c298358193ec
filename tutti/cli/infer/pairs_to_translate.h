#pragma once
// What `tutti translate` reads: sources from a text or a data set, with its targets, as tokens.

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "tutti/config/config.h"
#include "tutti/data/dataset.h"
#include "tutti/data/text/tokenizer.h"

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

/// Weights, and the file of their configuration.
struct TrainedPairs {
  std::filesystem::path weights, file;
  const RunConfig& config;
};

/// With the tokenizers of such weights (run_tokenizer.h). A line that data.window has no room for
/// becomes an empty source, and a warning names it; where it is all that there is, it is a
/// ConfigError, as where no tokenizer is known, or where the data set's is another one.
SequencePairs sequence_pairs(const SourcesGiven& given, const TrainedPairs& trained);

}  // namespace tutti
