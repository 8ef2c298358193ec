#pragma once
// TextSet: windows of a text as samples.
//
//   tokens    i32 [T]
//   next      i32 [T], the token behind each; -1 where there is none
//   segments  i32 [T], where documents are told apart: the number of each token's document, counted
//             from 0 in the window. The end token begins a document: it is what the last one's last
//             token is followed by, and what the next one's first token follows

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
  /// Whether a window may begin at any token, as a Sampler wants them in training; otherwise they
  /// follow each other, and the last one may have fewer tokens.
  bool anywhere = false;
  /// Of all tokens all, or those on one side of a cut: what validates is the text's end.
  enum class Part : uint8_t { all, before_cut, behind_cut };
  Part part = Part::all;
  double cut = 0;  ///< below 1: the share of the tokens that are behind; from 2 on their number
  /// Of characters: a tokenizer's folder. Empty: the characters of the training text, which is the
  /// part before the cut, or `training`.
  std::filesystem::path vocabulary{};
  std::vector<std::filesystem::path> training{};
};

class TextSet final : public Dataset {
 public:
  /// BadFile for files that are not there, empty, or not of their kind; ConfigError where a window
  /// is longer than the text, or documents are not told apart.
  explicit TextSet(const TextSetSpec& spec);

  int64_t size() const override { return size_; }
  const std::vector<Field>& fields() const override { return fields_; }
  void read(int64_t index, Sample& sample) const override;
  int64_t spacing() const override { return anywhere_ ? window_ : 1; }

  /// Null: what the tokens mean is not known.
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

/// Of texts: ConfigError unless tokens mean the same in both. `part`: "test".
void check_same_tokens(const Dataset& train, const Dataset& other, std::string_view part);

/// How many of `count` tokens lie before the cut, rounded down.
int64_t tokens_before(double cut, int64_t count);

}  // namespace tutti::data
