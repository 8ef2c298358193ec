#pragma once
// A Tokenizer turns text into numbers and back. Kinds:
//
//   bytes       a token for each of the 256 bytes
//   characters  a token for each character of the training text, in the order of Unicode
//   bpe         bytes, and tokens that join frequent pairs of tokens (byte_pairs.h)
//
// A folder keeps it in GPT-2's own form: vocab.json with the number of each token, and merges.txt;
// without merges.txt the tokens are characters.

#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace tutti::data {

/// The token that begins a document, where there are documents.
inline constexpr std::string_view kEndOfText = "<|endoftext|>";

/// Names the origin of a text, for messages.
struct TextPlace {
  TextPlace(std::string called, int64_t begins = 0) : name(std::move(called)), first(begins) {}
  TextPlace(const char* called) : name(called) {}
  std::string name;
  int64_t first = 0;  ///< number of the text's first byte there
};

/// Immutable: all calls may run on any number of threads.
class Tokenizer {
 public:
  virtual ~Tokenizer() = default;

  virtual std::string_view kind() const = 0;
  /// Returns the size of the vocabulary: tokens are numbers below it.
  virtual int64_t size() const = 0;
  /// Returns -1 if there is none.
  virtual int32_t end_token() const = 0;
  /// Appends the tokens of `text`; text that looks like the end token is encoded as any other. With
  /// characters: ConfigError for one that the vocabulary lacks, BadFile for bytes that are no
  /// UTF-8.
  virtual void encode(std::string_view text, const TextPlace& place,
                      std::vector<int32_t>& tokens) const = 0;
  /// Returns the token's text; the end token's is empty. CHECKs that it lies in the vocabulary.
  virtual std::string_view text_of(int32_t token) const = 0;
  /// The contents of vocab.json and merges.txt; the second empty: none.
  struct Files {
    std::string vocabulary, merges;
  };
  virtual Files files() const = 0;

  std::string decode(std::span<const int32_t> tokens) const;
  /// Returns XXH64 of files(): equal where the same tokens mean the same.
  uint64_t identity() const;
};

std::unique_ptr<Tokenizer> byte_tokenizer(bool with_end);
/// `characters` must ascend.
std::unique_ptr<Tokenizer> character_tokenizer(std::vector<char32_t> characters, bool with_end);

/// Reads a tokenizer from a folder. BadFile naming file and place for missing or invalid content.
std::unique_ptr<Tokenizer> read_tokenizer(const std::filesystem::path& folder);
/// Reads a tokenizer from the texts of such files; `name` is for messages.
std::unique_ptr<Tokenizer> parse_tokenizer(const Tokenizer::Files& files, const std::string& name);
/// Says whether the folder holds a tokenizer.
bool has_tokenizer(const std::filesystem::path& folder);
/// Writes the tokenizer to an existing folder. IoError.
void write_tokenizer(const Tokenizer& tokenizer, const std::filesystem::path& folder);

}  // namespace tutti::data
