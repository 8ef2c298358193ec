// Reads and writes vocab.json and merges.txt: tokens as GPT-2's files write them, with a printable
// character for each byte.

#include <algorithm>
#include <array>
#include <map>
#include <unordered_map>

#include "tutti/base/error.h"
#include "tutti/base/json.h"
#include "tutti/base/json_words.h"
#include "tutti/base/own_file.h"
#include "tutti/data/file/file_bytes.h"
#include "tutti/data/file/text_file.h"
#include "tutti/data/text/byte_pairs.h"
#include "tutti/data/text/token_file.h"
#include "tutti/data/text/tokenizer.h"
#include "tutti/data/text/utf8.h"
#include "tutti/data/text/vocabulary_files.h"

namespace tutti::data {
namespace {

namespace fs = std::filesystem;

constexpr const char* kVocabularyFile = "vocab.json";
constexpr const char* kMergesFile = "merges.txt";
constexpr int64_t kMostFileBytes = int64_t{256} << 20;

/// Maps each byte: printable ones to themselves; the others, in order, to U+0100 and on.
const std::array<char32_t, 256>& printable() {
  static const std::array<char32_t, 256> codes = [] {
    std::array<char32_t, 256> of{};
    char32_t next = 0x100;
    for (char32_t byte = 0; byte < 256; ++byte) {
      const bool itself = (byte >= '!' && byte <= '~') || (byte >= 0xa1 && byte != 0xad);
      of[byte] = itself ? byte : next++;
    }
    return of;
  }();
  return codes;
}

std::string printed(std::string_view bytes) {
  std::string text;
  for (const char byte : bytes) append_character(text, printable()[static_cast<uint8_t>(byte)]);
  return text;
}

/// Maps text back to bytes; text with other characters, such as the end token, stands for itself.
std::string mapped_back(const std::string& text) {
  static const std::map<char32_t, char> bytes = [] {
    std::map<char32_t, char> of;
    for (size_t byte = 0; byte < 256; ++byte) of[printable()[byte]] = static_cast<char>(byte);
    return of;
  }();
  std::string out;
  for (size_t at = 0; at < text.size();) {
    const Utf8Character character = first_character(std::string_view(text).substr(at));
    const auto found = bytes.find(character.code);
    if (character.bytes == 0 || found == bytes.end()) return text;
    out += found->second;
    at += character.bytes;
  }
  return out;
}

/// Returns the text of each token, as the file writes it.
std::vector<std::string> parse_vocabulary(const std::string& text, const std::string& file) {
  if (const std::string why = why_no_text(text, file, "tokens as JSON"); !why.empty())
    throw BadFile(why);
  std::map<std::string, int64_t> members;
  try {
    members = parse_numbers(text);
  } catch (const Json::parse_error& error) {
    throw BadFile("{}: is no JSON: {}", file, json_words(error));
  } catch (const IoError& error) {
    throw BadFile("{}: expected an object of tokens and their numbers: {}", file, error.what());
  }
  if (members.empty()) throw BadFile("{}: has no tokens", file);
  if (std::ssize(members) > kMostTokens)
    throw BadFile("{}: has {} tokens, at most {} can be used: give another vocabulary", file,
                  members.size(), kMostTokens);
  std::vector<std::string> tokens(members.size());
  std::vector<bool> taken(members.size(), false);
  for (const auto& [token, at] : members) {
    if (at < 0 || at >= std::ssize(tokens) || taken[static_cast<size_t>(at)])
      throw BadFile(
          "{}: token '{}' has the number {}: {} tokens have the numbers 0 to {}, each once", file,
          token, at, tokens.size(), tokens.size() - 1);
    taken[static_cast<size_t>(at)] = true;
    tokens[static_cast<size_t>(at)] = token;
  }
  return tokens;
}

std::vector<TokenPair> parse_merges(const std::string& written,
                                    const std::vector<std::string>& tokens,
                                    const std::string& file) {
  if (const std::string why = why_no_text(written, file, "pairs of tokens"); !why.empty())
    throw BadFile(why);
  const std::string lines = plain_lines(written);
  std::string_view text = lines;
  std::unordered_map<std::string_view, int32_t> numbers;
  for (const std::string& token : tokens)
    numbers.emplace(token, static_cast<int32_t>(&token - tokens.data()));
  std::vector<TokenPair> merges;
  for (int64_t line = 1; !text.empty(); ++line) {
    const std::string_view one = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(text.size(), one.size() + 1));
    if (one.empty() || (line == 1 && one.starts_with("#version"))) continue;
    const size_t blank = one.find(' ');
    const auto number = [&](std::string_view token) {
      const auto found = numbers.find(token);
      if (blank == one.npos || found == numbers.end())
        throw BadFile("{}:{}: expected two tokens of {} with a blank between them, found '{}'",
                      file, line, kVocabularyFile, one);
      return found->second;
    };
    merges.push_back(
        {number(one.substr(0, blank)), number(one.substr(std::min(blank, one.size() - 1) + 1))});
  }
  return merges;
}

std::unique_ptr<Tokenizer> parse_characters(const std::vector<std::string>& tokens,
                                            const std::string& name) {
  std::vector<char32_t> characters;
  bool with_end = false;
  for (size_t t = 0; t < tokens.size(); ++t) {
    const std::string& token = tokens[t];
    const Utf8Character one = token.empty() ? Utf8Character{} : first_character(token);
    with_end = t + 1 == tokens.size() && token == kEndOfText;
    if (with_end) break;
    if (one.bytes == 0 || one.bytes != token.size() ||
        (!characters.empty() && characters.back() >= one.code))
      throw BadFile(
          "{}: token {} is '{}': without {} beside it, tokens are single characters in the order "
          "of their numbers",
          name, t, token, kMergesFile);
    characters.push_back(one.code);
  }
  return character_tokenizer(std::move(characters), with_end);
}

std::string read_small(const fs::path& path) {
  const FileBytes file = FileBytes::open(path);
  if (file.size() > kMostFileBytes)
    throw BadFile("{}: has {} bytes, too many for a vocabulary", file.name(), file.size());
  std::string text(static_cast<size_t>(file.size()), '\0');
  if (!text.empty()) file.read(0, {reinterpret_cast<uint8_t*>(text.data()), text.size()});
  return text;
}

void write_small(const fs::path& path, const std::string& text) {
  auto file = output_stream(path);
  errno = 0;
  file << text << std::flush;
  if (!file) throw IoError(fmt::format("{}: cannot write: {}", path.string(), file_error(errno)));
}

std::string json_of(const std::vector<std::string>& tokens) {
  std::string text = "{";
  for (size_t t = 0; t < tokens.size(); ++t)
    text += fmt::format("{}{}: {}", t ? ", " : "", print_json(Json(tokens[t])), t);
  return text + "}\n";
}

}  // namespace

std::vector<std::string> single_bytes() {
  std::vector<std::string> bytes;
  for (const bool itself : {true, false})
    for (size_t byte = 0; byte < 256; ++byte)
      if ((printable()[byte] < 0x100) == itself) bytes.emplace_back(1, static_cast<char>(byte));
  return bytes;
}

Tokenizer::Files BytePairTokenizer::files() const {
  std::vector<std::string> tokens;
  for (int32_t t = 0; t < size(); ++t) {
    const std::string& bytes = pairs_.tokens[static_cast<size_t>(t)];
    tokens.push_back(t == end_token() ? bytes : printed(bytes));
  }
  std::string merges = "#version: 0.2\n";
  for (const TokenPair& pair : pairs_.merges)
    merges += tokens[static_cast<size_t>(pair.left)] + " " +
              tokens[static_cast<size_t>(pair.right)] + "\n";
  return {json_of(tokens), merges};
}

std::string character_vocabulary(const std::vector<std::string>& characters) {
  return json_of(characters);
}

std::unique_ptr<Tokenizer> parse_tokenizer(const Tokenizer::Files& files, const std::string& name) {
  const std::string file = (fs::path(name) / kVocabularyFile).string();
  std::vector<std::string> written = parse_vocabulary(files.vocabulary, file);
  if (files.merges.empty()) return parse_characters(written, file);
  BytePairs pairs;
  pairs.merges = parse_merges(files.merges, written, (fs::path(name) / kMergesFile).string());
  for (const std::string& token : written) {
    if (token == kEndOfText) pairs.end_token = static_cast<int32_t>(&token - written.data());
    pairs.tokens.push_back(token == kEndOfText ? token : mapped_back(token));
  }
  return std::make_unique<BytePairTokenizer>(std::move(pairs), name);
}

bool has_tokenizer(const fs::path& folder) { return is_file(folder / kVocabularyFile); }

std::unique_ptr<Tokenizer> read_tokenizer(const fs::path& folder) {
  if (!has_tokenizer(folder))
    throw BadFile(
        "{} holds no vocab.json: a tokenizer is a folder with vocab.json and, of byte pairs, "
        "merges.txt, as GPT-2's files are; 'tutti data tokenize' makes one",
        folder.string());
  Tokenizer::Files files{read_small(folder / kVocabularyFile), {}};
  if (is_file(folder / kMergesFile)) {
    files.merges = read_small(folder / kMergesFile);
    if (files.merges.empty()) files.merges = "\n";  // a tokenizer of bytes only
  }
  return parse_tokenizer(files, folder.string());
}

void write_tokenizer(const Tokenizer& tokenizer, const fs::path& folder) {
  const Tokenizer::Files files = tokenizer.files();
  write_small(folder / kVocabularyFile, files.vocabulary);
  if (!files.merges.empty()) return write_small(folder / kMergesFile, files.merges);
  std::error_code failed;
  fs::remove(folder / kMergesFile, failed);  // left by an earlier tokenizer
  if (failed)
    throw IoError(fmt::format("{}: cannot be removed: {}", (folder / kMergesFile).string(),
                              failed.message()));
}

}  // namespace tutti::data
