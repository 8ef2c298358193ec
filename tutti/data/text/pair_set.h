#pragma once
// PairSet: documents of two texts as samples, one to be made from the other: sentences and their
// translations, sequences and what is asked of them.
//
//   source  i32 [T], the tokens of the first text's document
//   tokens  i32 [T], the end token, then those of the second text's
//   next    i32 [T], the second text's, then the end token: what comes behind each of `tokens`
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
  /// Token files whose documents begin with an end token, as many in both.
  std::vector<std::filesystem::path> source{}, target{};
  /// T: left out are pairs of which one is empty, of which the source has more tokens, or the
  /// target as many: behind it the end token stands.
  int64_t window = 64;
};

class PairSet final : public Dataset {
 public:
  /// Walks over the files once, to know where their documents are; of each two numbers are kept.
  /// BadFile for files that are not there or have other numbers of documents; ConfigError where no
  /// pair fits the window.
  explicit PairSet(const PairSetSpec& spec);

  int64_t size() const override { return std::ssize(pairs_); }
  const std::vector<Field>& fields() const override { return fields_; }
  void read(int64_t index, Sample& sample) const override;

  int64_t left_out() const { return left_out_; }
  /// Of the second text, and of the first; null: not known.
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

/// The pairs that a data set is, or that it is a part of; null: none.
const PairSet* pairs_in(const Dataset& set);

}  // namespace tutti::data
