#include "tutti/data/text/tokenizer.h"

#include <xxhash.h>

#include <algorithm>
#include <array>

#include "tutti/base/error.h"
#include "tutti/data/file/file_bytes.h"
#include "tutti/data/text/byte_pairs.h"
#include "tutti/data/text/utf8.h"
#include "tutti/data/text/vocabulary_files.h"

namespace tutti::data {
namespace {

/// Returns "'x' (U+0078)"; only the number for a control character, which a terminal would obey.
std::string shown_character(std::string_view character, char32_t code) {
  const std::string number = fmt::format("U+{:04X}", static_cast<uint32_t>(code));
  const bool control = code < 0x20 || (code >= 0x7f && code < 0xa0);
  return control ? number : fmt::format("'{}' ({})", character, number);
}

class CharacterTokenizer final : public Tokenizer {
 public:
  CharacterTokenizer(std::vector<char32_t> characters, bool with_end)
      : characters_(std::move(characters)),
        end_(with_end ? static_cast<int32_t>(characters_.size()) : -1) {
    ascii_.fill(-1);
    for (size_t t = 0; t < characters_.size(); ++t) {
      texts_.emplace_back();
      append_character(texts_.back(), characters_[t]);
      if (characters_[t] < ascii_.size()) ascii_[characters_[t]] = static_cast<int32_t>(t);
    }
  }

  std::string_view kind() const override { return "characters"; }
  int64_t size() const override { return std::ssize(characters_) + (end_ >= 0 ? 1 : 0); }
  int32_t end_token() const override { return end_; }

  void encode(std::string_view text, const TextPlace& place,
              std::vector<int32_t>& tokens) const override {
    for (size_t at = 0; at < text.size();) {
      const Utf8Character character = first_character(text.substr(at));
      if (character.bytes == 0)
        throw BadFile(
            "{}: byte {} (0x{:02x}) is no UTF-8: convert the text, or use the tokenizer \"bytes\"",
            place.name, place.first + static_cast<int64_t>(at), static_cast<uint8_t>(text[at]));
      const int32_t token = token_of(character.code);
      if (token < 0)
        throw ConfigError(fmt::format(
            "{}: the character {} at byte {} is not in the vocabulary of {} characters, which are "
            "those of the training text: leave it out, or use the tokenizer \"bytes\"",
            place.name, shown_character(text.substr(at, character.bytes), character.code),
            place.first + static_cast<int64_t>(at), characters_.size()));
      tokens.push_back(token);
      at += character.bytes;
    }
  }

  std::string_view text_of(int32_t token) const override {
    CHECK(token >= 0 && token < size(), "token {} of {}", token, size());
    return token == end_ ? std::string_view() : texts_[static_cast<size_t>(token)];
  }

  Files files() const override {
    std::vector<std::string> all = texts_;
    if (end_ >= 0) all.emplace_back(kEndOfText);
    return {character_vocabulary(all), {}};
  }

 private:
  int32_t token_of(char32_t code) const {
    if (code < ascii_.size()) return ascii_[code];
    const auto found = std::ranges::lower_bound(characters_, code);
    return found != characters_.end() && *found == code
               ? static_cast<int32_t>(found - characters_.begin())
               : -1;
  }

  std::vector<char32_t> characters_;
  std::vector<std::string> texts_;
  std::array<int32_t, 128> ascii_{};
  int32_t end_;
};

}  // namespace

std::string Tokenizer::decode(std::span<const int32_t> tokens) const {
  std::string text;
  for (const int32_t token : tokens) text += text_of(token);
  return text;
}

uint64_t Tokenizer::identity() const {
  const Files own = files();
  return XXH64(own.merges.data(), own.merges.size(),
               XXH64(own.vocabulary.data(), own.vocabulary.size(), 0));
}

std::unique_ptr<Tokenizer> byte_tokenizer(bool with_end) {
  BytePairs pairs;
  for (size_t byte = 0; byte < 256; ++byte) pairs.tokens.emplace_back(1, static_cast<char>(byte));
  if (with_end) {
    pairs.tokens.emplace_back(kEndOfText);
    pairs.end_token = 256;
  }
  return std::make_unique<BytePairTokenizer>(std::move(pairs), "bytes");
}

std::unique_ptr<Tokenizer> character_tokenizer(std::vector<char32_t> characters, bool with_end) {
  return std::make_unique<CharacterTokenizer>(std::move(characters), with_end);
}

}  // namespace tutti::data
