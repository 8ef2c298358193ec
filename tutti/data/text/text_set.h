#pragma once
// A TextSet has windows of a text as samples.
//
//   tokens    i32 [T]
//   next      i32 [T], the token after each; -1 where there is none
//   segments  i32 [T], where documents are told apart: the number of each token's document, counted
//             from 0 in the window. The end token begins a document: it follows the last token of
//             one document and precedes the first token of the next

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "tutti/data/dataset.h"
#include "tutti/data/text/text_source.h"

namespace tutti::data {

struct TextSetSpec {
  enum class Kind : uint8_t { bytes, characters, tokens };
  Kind kind = Kind::bytes;
  std::vector<std::filesystem::path> files{};
  int64_t window = 256;  ///< T
  bool segments = false;
  /// Says whether a window may begin at any token, as a Sampler expects in training; otherwise
  /// windows follow each other, and the last one may have fewer tokens.
  bool anywhere = false;
  /// Selects all tokens, or those on one side of a cut: the end of the text is for validation.
  enum class Part : uint8_t { all, before_cut, behind_cut };
  Part part = Part::all;
  double cut = 0;  ///< below 1: share of the tokens after the cut; from 2 on: their number
  /// For characters: the folder of a tokenizer. Empty: the characters of the training text, which
  /// is the part before the cut, or `training`.
  std::filesystem::path vocabulary{};
  std::vector<std::filesystem::path> training{};
};

class TextSet final : public Dataset {
 public:
  /// BadFile for files that are missing, empty, or not of their kind; ConfigError where a window is
  /// longer than the text, or documents cannot be told apart.
  explicit TextSet(const TextSetSpec& spec);

  int64_t size() const override { return size_; }
  const std::vector<Field>& fields() const override { return fields_; }
  void read(int64_t index, Sample& sample) const override;
  int64_t spacing() const override { return anywhere_ ? window_ : 1; }

  /// Returns null if the meaning of the tokens is not known.
  const Tokenizer* tokenizer() const { return source_->tokenizer(); }
  uint64_t tokenizer_identity() const { return source_->tokenizer_identity(); }  ///< 0: not known
  int64_t tokens() const { return count_; }
  int64_t vocabulary() const { return source_->vocabulary(); }

 private:
  std::unique_ptr<TextSource> source_;
  int64_t first_ = 0, count_ = 0;  // tokens of the part
  int64_t window_ = 0, size_ = 0;
  bool anywhere_ = false;
  std::vector<Field> fields_;
};

/// Compares text sets: ConfigError unless tokens mean the same in both. `part`: "test".
void check_same_tokens(const Dataset& train, const Dataset& other, std::string_view part);

/// Returns how many of `count` tokens lie before the cut, rounded down.
int64_t tokens_before(double cut, int64_t count);

}  // namespace tutti::data
