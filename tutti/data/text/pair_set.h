#pragma once
// A PairSet has pairs of documents as samples, one to be made from the other: sentences and their
// translations, or sequences and the answers to them.
//
//   source  i32 [T], the tokens of the first text's document
//   tokens  i32 [T], the end token, then the tokens of the second text's document
//   next    i32 [T], the second document, then the end token: the successor of each of `tokens`
//
// -1 where a document has no more tokens.

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "tutti/data/dataset.h"
#include "tutti/data/text/text_source.h"

namespace tutti::data {

struct PairSetSpec {
  /// Token files whose documents begin with an end token; both sides have equally many documents.
  std::vector<std::filesystem::path> source{}, target{};
  /// T. Pairs are left out if either document is empty, the source has more than T tokens, or the
  /// target has T or more: the end token follows it.
  int64_t window = 64;
};

class PairSet final : public Dataset {
 public:
  /// Walks over the files once to find their documents; keeps two numbers for each. BadFile for
  /// files that are missing or differ in the number of documents; ConfigError where no pair fits
  /// the window.
  explicit PairSet(const PairSetSpec& spec);

  int64_t size() const override { return std::ssize(pairs_); }
  const std::vector<Field>& fields() const override { return fields_; }
  void read(int64_t index, Sample& sample) const override;

  int64_t left_out() const { return left_out_; }
  /// Return the tokenizer of the second text, and of the first; null: not known.
  const Tokenizer* tokenizer() const { return target_->tokenizer(); }
  const Tokenizer* source_tokenizer() const { return source_->tokenizer(); }
  const TextSource& source() const { return *source_; }
  const TextSource& target() const { return *target_; }

 private:
  struct Places {
    int64_t first = 0, count = 0;  // tokens without the end token
  };
  struct Pair {
    Places source, target;
  };
  static std::vector<Places> documents_of(const TextSource& text);

  std::unique_ptr<TextSource> source_, target_;
  int64_t window_ = 0, left_out_ = 0;
  std::vector<Pair> pairs_;
  std::vector<Field> fields_;
};

/// Returns the pairs that a data set is or is a part of; null: none.
const PairSet* pairs_in(const Dataset& set);

}  // namespace tutti::data
