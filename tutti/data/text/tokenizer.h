#pragma once
// Tokenizer: text as numbers and back.
//
//   bytes       a token for each of the 256 bytes
//   characters  a token for each character of the text it was made from, in the order of Unicode
//   bpe         bytes, and what frequent pairs of tokens make together (byte_pairs.h)
//
// A folder keeps it, in GPT-2's own form: vocab.json with the number of each token, and merges.txt;
// without merges.txt the tokens are characters.

#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace tutti::data {

/// What begins a document, where there are documents.
inline constexpr std::string_view kEndOfText = "<|endoftext|>";

/// Where a text comes from, for messages.
struct TextPlace {
  TextPlace(std::string called, int64_t begins = 0) : name(std::move(called)), first(begins) {}
  TextPlace(const char* called) : name(called) {}
  std::string name;
  int64_t first = 0;  ///< the number of its first byte there
};

/// Immutable: all calls may run on any number of threads.
class Tokenizer {
 public:
  virtual ~Tokenizer() = default;

  virtual std::string_view kind() const = 0;
  /// Of the vocabulary: tokens are numbers below it.
  virtual int64_t size() const = 0;
  /// -1: there is none.
  virtual int32_t end_token() const = 0;
  /// Appends the tokens of `text`; what looks like the end token is text as any other. Of
  /// characters: ConfigError for one that the vocabulary lacks, BadFile for bytes that are no
  /// UTF-8.
  virtual void encode(std::string_view text, const TextPlace& place,
                      std::vector<int32_t>& tokens) const = 0;
  /// What the token stands for: of the end token nothing. CHECKs that it lies in the vocabulary.
  virtual std::string_view text_of(int32_t token) const = 0;
  /// vocab.json and merges.txt; the second empty: none.
  struct Files {
    std::string vocabulary, merges;
  };
  virtual Files files() const = 0;

  std::string decode(std::span<const int32_t> tokens) const;
  /// Alike where the same tokens mean the same: XXH64 of files().
  uint64_t identity() const;
};

std::unique_ptr<Tokenizer> byte_tokenizer(bool with_end);
/// `characters`: ascending.
std::unique_ptr<Tokenizer> character_tokenizer(std::vector<char32_t> characters, bool with_end);

/// From a folder. BadFile naming file and place for what is not there or cannot be understood.
std::unique_ptr<Tokenizer> read_tokenizer(const std::filesystem::path& folder);
/// From such files' texts; `name` is for messages.
std::unique_ptr<Tokenizer> parse_tokenizer(const Tokenizer::Files& files, const std::string& name);
/// Whether the folder holds one.
bool has_tokenizer(const std::filesystem::path& folder);
/// Into a folder, which is there. IoError.
void write_tokenizer(const Tokenizer& tokenizer, const std::filesystem::path& folder);

}  // namespace tutti::data
