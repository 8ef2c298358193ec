#pragma once
// TextSource: files of text or of tokens as one sequence of tokens, read by position.

#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "tutti/data/file/file_bytes.h"
#include "tutti/data/text/tokenizer.h"

namespace tutti::data {

/// Immutable: all calls may run on any number of threads.
class TextSource {
 public:
  virtual ~TextSource() = default;
  virtual int64_t size() const = 0;  ///< tokens
  /// Tokens first, first + 1, ..., all of them within size(). BadFile, ConfigError.
  virtual void read(int64_t first, std::span<int32_t> out) const = 0;
  virtual int64_t vocabulary() const = 0;
  virtual int32_t end_token() const = 0;  ///< -1: documents are not told apart
  /// What the tokens mean; null: no tokenizer lies beside the files.
  virtual const Tokenizer* tokenizer() const = 0;
  /// Tokenizer::identity(), which token files know without it; 0: not known.
  virtual uint64_t tokenizer_identity() const { return tokenizer() ? tokenizer()->identity() : 0; }
};

/// A text. BadFile where it is compressed, an archive, a pointer to another file, or a token file.
FileBytes open_text(const std::filesystem::path& path);
/// A text that is read as characters or words. BadFile also where it is UTF-16 or no text at all,
/// as a PDF or a data base; a page of the web is a text.
FileBytes open_utf8(const std::filesystem::path& path);

/// Text files one after the other, a token a byte: nothing is read of them but what is asked for.
std::unique_ptr<TextSource> byte_text(const std::vector<std::filesystem::path>& files);

/// The same, a token a character. UTF-8, which is checked as the files are walked through once; of
/// 4096 characters one place is kept. A byte-order mark at a file's beginning is passed over.
/// BadFile naming file and byte.
class CharacterText {
 public:
  explicit CharacterText(const std::vector<std::filesystem::path>& files);
  ~CharacterText();
  CharacterText(CharacterText&&) noexcept;
  int64_t size() const;
  /// Those that are among the `count` characters from `first` on, ascending.
  std::vector<char32_t> characters(int64_t first, int64_t count) const;
  /// Where the first of these characters stands that is `code`; it is among them.
  TextPlace place_of(char32_t code, int64_t first, int64_t count) const;
  /// As tokens of such characters.
  std::unique_ptr<TextSource> source(std::shared_ptr<const Tokenizer> tokenizer) &&;

 private:
  class Walked;
  std::unique_ptr<Walked> walked_;
};

/// Token files, which are all shards of one part, in their order. BadFile where one is missing, or
/// they do not belong together, or do not fit the tokenizer beside them.
std::unique_ptr<TextSource> token_shards(const std::vector<std::filesystem::path>& files);

}  // namespace tutti::data
