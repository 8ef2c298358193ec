#pragma once
// A TextSource presents files of text or of tokens as one sequence of tokens, read by position.

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
  /// Reads tokens first, first + 1, ..., all of them within size(). BadFile, ConfigError.
  virtual void read(int64_t first, std::span<int32_t> out) const = 0;
  virtual int64_t vocabulary() const = 0;
  virtual int32_t end_token() const = 0;  ///< -1: documents cannot be told apart
  /// Returns the meaning of the tokens; null: no tokenizer lies beside the files.
  virtual const Tokenizer* tokenizer() const = 0;
  /// Returns Tokenizer::identity(), which token files also store; 0: not known.
  virtual uint64_t tokenizer_identity() const { return tokenizer() ? tokenizer()->identity() : 0; }
};

/// Opens a text. BadFile if it is compressed, an archive, a pointer to another file, or a token
/// file.
FileBytes open_text(const std::filesystem::path& path);
/// Opens a text to be read as characters or words. BadFile also if it is UTF-16 or no text at all,
/// such as a PDF or a database; a web page is a text.
FileBytes open_utf8(const std::filesystem::path& path);

/// Presents text files as one sequence with a token per byte, and reads only the bytes asked for.
std::unique_ptr<TextSource> byte_text(const std::vector<std::filesystem::path>& files);

/// A source of characters, which are tokens only when it has got a tokenizer.
class CharacterText : public TextSource {
 public:
  /// Returns the distinct characters among the `count` from `first` on, ascending.
  virtual std::vector<char32_t> characters(int64_t first, int64_t count) const = 0;
  /// Returns the place of the first of these characters that is `code`; there must be one.
  virtual TextPlace place_of(char32_t code, int64_t first, int64_t count) const = 0;
  virtual void set_tokenizer(std::shared_ptr<const Tokenizer> tokenizer) = 0;
};
/// Presents text files as one sequence with a token per character. The files must be UTF-8, which
/// is checked in one walk through them; one place is kept per 4096 characters. A byte-order mark at
/// a file's beginning is skipped. BadFile naming file and byte.
std::unique_ptr<CharacterText> character_text(const std::vector<std::filesystem::path>& files);

/// Opens token files, which are all shards of one part, in their order. BadFile if one is missing,
/// or they do not belong together, or do not fit the tokenizer beside them.
std::unique_ptr<TextSource> token_shards(const std::vector<std::filesystem::path>& files);

}  // namespace tutti::data
