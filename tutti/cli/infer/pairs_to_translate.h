#pragma once
// The input of `tutti translate`: sources from a text or a data set, with its targets, as tokens.

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "tutti/config/config.h"
#include "tutti/data/dataset.h"
#include "tutti/data/text/tokenizer.h"

namespace tutti {

/// Exactly one of text, file and split is set.
struct SourcesGiven {
  std::string text, file, split;
  int64_t samples = 0;  ///< only the first ones; 0: all
};

struct SequencePairs {
  std::vector<std::vector<int32_t>> sources;   ///< empty for an empty line
  std::vector<std::vector<int32_t>> targets;   ///< without the end token; empty: not known
  int32_t end_token = 0;                       ///< end token of targets
  std::unique_ptr<data::Tokenizer> tokenizer;  ///< tokenizer of targets; null: tokens are numbers
  std::unique_ptr<data::Dataset> fields;       ///< the fields of samples, for a network

  /// Returns the text on one line; numbers where no tokenizer is known.
  std::string text_of_target(std::span<const int32_t> tokens) const;
  /// Returns the units that BLEU counts: words of the text, or tokens.
  std::vector<std::string> words_of_target(std::span<const int32_t> tokens) const;
};

/// Weights, and the file of their configuration.
struct TrainedPairs {
  std::filesystem::path weights, file;
  const RunConfig& config;
};

/// Reads pairs with the tokenizers of such weights (run_tokenizer.h). A line longer than
/// data.window becomes an empty source, and a warning names it. Throws ConfigError if all lines are
/// too long, no tokenizer is known, or the data set has another one.
SequencePairs sequence_pairs(const SourcesGiven& given, const TrainedPairs& trained);

}  // namespace tutti
