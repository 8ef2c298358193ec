#include "tutti/data/text/text_set.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "tutti/base/error.h"
#include "tutti/data/file/file_bytes.h"
#include "tutti/data/text/pair_set.h"
#include "tutti/data/text/utf8.h"

namespace tutti::data {
namespace {

struct TokenRange {
  int64_t first = 0, count = 0;
};

TokenRange range_of(const TextSetSpec& spec, int64_t count) {
  if (spec.part == TextSetSpec::Part::all) return {0, count};
  const int64_t before = tokens_before(spec.cut, count);
  return spec.part == TextSetSpec::Part::before_cut ? TokenRange{0, before}
                                                    : TokenRange{before, count - before};
}

/// Returns the characters of the training text, or the tokenizer of a folder if one is given.
std::shared_ptr<const Tokenizer> characters_of(const TextSetSpec& spec, const CharacterText& text) {
  if (!spec.vocabulary.empty()) {
    std::shared_ptr<const Tokenizer> tokenizer = read_tokenizer(spec.vocabulary);
    if (tokenizer->kind() != "characters")
      throw ConfigError(
          fmt::format("{} holds a tokenizer of {}, and data.tokenizer = "
                      "\"characters\": name the folder of another",
                      spec.vocabulary.string(), tokenizer->kind()));
    return tokenizer;
  }
  if (!spec.training.empty()) {
    const auto training = character_text(spec.training);
    return character_tokenizer(training->characters(0, training->size()), false);
  }
  const bool cut = spec.part != TextSetSpec::Part::all;
  return character_tokenizer(
      text.characters(0, cut ? tokens_before(spec.cut, text.size()) : text.size()), false);
}

std::unique_ptr<TextSource> open_source(const TextSetSpec& spec) {
  if (spec.kind == TextSetSpec::Kind::bytes) return byte_text(spec.files);
  if (spec.kind == TextSetSpec::Kind::tokens) return token_shards(spec.files);
  std::unique_ptr<CharacterText> text = character_text(spec.files);
  std::shared_ptr<const Tokenizer> tokenizer = characters_of(spec, *text);
  // Unknown characters are reported now: a window that has one may be read hours later.
  const TokenRange range = range_of(spec, text->size());
  std::vector<int32_t> known;
  for (const char32_t code : text->characters(range.first, range.count)) {
    std::string character;
    append_character(character, code);
    try {
      tokenizer->encode(character, spec.files.front().string(), known);
    } catch (const ConfigError&) {
      tokenizer->encode(character, text->place_of(code, range.first, range.count), known);
      throw;
    }
  }
  text->set_tokenizer(std::move(tokenizer));
  return text;
}

std::string text_called(const TextSetSpec& spec) {
  return spec.files.size() == 1
             ? spec.files.front().string()
             : fmt::format("{} and {} more", spec.files.front().string(), spec.files.size() - 1);
}

/// Returns names of tokens for messages and listings.
std::vector<std::string> token_names(const TextSource& source) {
  std::vector<std::string> names(static_cast<size_t>(source.vocabulary()));
  if (source.tokenizer())
    for (size_t t = 0; t < names.size(); ++t)
      names[t] = source.tokenizer()->text_of(static_cast<int32_t>(t));
  return names;
}

}  // namespace

void check_same_tokens(const Dataset& train, const Dataset& other, std::string_view part) {
  const auto check = [&](const auto& a, const auto& b) {
    if (a.vocabulary() == b.vocabulary() && a.tokenizer_identity() == b.tokenizer_identity())
      return;
    throw ConfigError(fmt::format(
        "the training text has a vocabulary of {} tokens, and the {} text another one, of {}: "
        "tokenize both with the same tokenizer ('tutti data tokenize --part {} --files DIR')",
        a.vocabulary(), part, b.vocabulary(), part));
  };
  const auto* const text = dynamic_cast<const TextSet*>(&train);
  const auto* const other_text = dynamic_cast<const TextSet*>(&other);
  if (text && other_text) check(*text, *other_text);
  const PairSet *const pairs = pairs_in(train), *const other_pairs = pairs_in(other);
  if (!pairs || !other_pairs) return;
  check(pairs->source(), other_pairs->source());
  check(pairs->target(), other_pairs->target());
}

int64_t tokens_before(double cut, int64_t count) {
  const auto all = static_cast<double>(count);
  return cut < 1 ? static_cast<int64_t>(all * (1 - cut))
                 : std::max<int64_t>(0, count - static_cast<int64_t>(cut));
}

TextSet::TextSet(const TextSetSpec& spec)
    : source_(open_source(spec)), window_(spec.window), anywhere_(spec.anywhere) {
  const TokenRange range = range_of(spec, source_->size());
  first_ = range.first;
  count_ = range.count;
  if (source_->size() == 0) throw BadFile("{}: has no text: name another file", text_called(spec));
  const int64_t least = anywhere_ ? window_ + 1 : 2;
  if (count_ < least)
    throw ConfigError(fmt::format(
        "{}: this part of the text has {} tokens, and a window needs {}: lower data.window ({}), "
        "change data.validation, or use more text",
        text_called(spec), count_, least, window_));
  size_ = anywhere_ ? count_ - window_ : (count_ - 1 + window_ - 1) / window_;
  if (spec.segments && source_->end_token() < 0)
    throw ConfigError(fmt::format(
        "data.segments = true: {} tell no documents apart; 'tutti data tokenize --separator TEXT' "
        "writes token files that do",
        text_called(spec)));
  const Field tokens{.name = "tokens",
                     .element = ElementType::i32,
                     .shape = {window_},
                     .class_names = token_names(*source_)};
  Field next = tokens;
  next.name = "next";
  fields_ = {tokens, next};
  if (spec.segments)
    fields_.push_back({.name = "segments", .element = ElementType::i32, .shape = {window_}});
}

void TextSet::read(int64_t index, Sample& sample) const {
  const int64_t from = anywhere_ ? index : index * window_;
  const int64_t known = std::min(window_ + 1, count_ - from);
  CHECK(index >= 0 && index < size_ && known > 1, "window {} of {}", index, size_);
  std::vector<int32_t> read(static_cast<size_t>(known));
  source_->read(first_ + from, read);
  const auto window = static_cast<size_t>(window_);
  const std::span<int32_t> tokens(static_cast<int32_t*>(sample.own(0)), window),
      next(static_cast<int32_t*>(sample.own(1)), window);
  std::ranges::fill(tokens, 0);
  std::ranges::fill(next, -1);
  std::copy(read.begin(), read.end() - 1, tokens.begin());
  std::copy(read.begin() + 1, read.end(), next.begin());
  if (fields_.size() < 3) return;
  auto* segments = static_cast<int32_t*>(sample.own(2));
  int32_t document = 0;
  for (size_t i = 0; i < window; ++i) {
    if (i > 0 && i + 1 < read.size() && read[i] == source_->end_token()) ++document;
    segments[i] = document;
  }
}

}  // namespace tutti::data
