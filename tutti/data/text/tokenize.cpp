#include "tutti/data/text/tokenize.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "tutti/base/error.h"
#include "tutti/data/each_sample.h"
#include "tutti/data/file/file_bytes.h"
#include "tutti/data/file/first_bytes.h"
#include "tutti/data/text/pair_training.h"
#include "tutti/data/text/pre_tokens.h"
#include "tutti/data/text/text_source.h"
#include "tutti/data/text/token_file.h"
#include "tutti/data/text/tokenizer.h"
#include "tutti/data/text/utf8.h"

namespace tutti::data {
namespace {

namespace fs = std::filesystem;

// A part of a text that no piece crosses.
struct TextChunk {
  std::string_view text{};
  int64_t first = 0;  // its first byte in the file
  bool begins_document = false;
};

struct TextRange {
  std::vector<std::filesystem::path> files;
  int64_t first = 0, last = 0;  // bytes, counted over all files
};

struct TextCuts {
  bool anywhere = false;    // cut between any two characters; otherwise only between pieces
  std::string separator{};  // between documents; empty: none
  bool with_marks = false;  // a byte-order mark at a file's beginning is part of the text
};

constexpr int64_t kTextBlock = 16 << 20;
constexpr size_t kChunk = 256 << 10;

/// Returns where a text without white space may be cut: before the last separator, else at the
/// end of a piece found from its beginning, which starts a piece. 0: needs more of the text.
size_t cut_by_pieces(std::string_view text, const TextCuts& cuts) {
  size_t at = 0, last = 0;
  const auto next_separator = [&] {
    return cuts.separator.empty() ? text.npos : text.find(cuts.separator, at);
  };
  for (size_t found = next_separator(); found != text.npos; found = next_separator()) {
    last = found;
    at = found + cuts.separator.size();
  }
  if (last > 0) return last;
  // Pieces this far from the end do not depend on the text that follows.
  while (text.size() - at > 2 * kLongestPiece) at += first_piece(text.substr(at));
  return at;
}

/// Returns the last place in `text` where it may be cut; 0: there is none.
size_t last_cut(std::string_view text, const TextCuts& cuts) {
  if (!cuts.anywhere || !cuts.separator.empty()) {
    const size_t cut = last_safe_cut(text);
    return cut > 0 ? cut : cut_by_pieces(text, cuts);
  }
  size_t cut = text.size();
  for (int i = 0; i < 4 && cut > 0; ++i)
    if (!continues_character(text[--cut])) return cut;
  return text.size();  // no UTF-8: encoding reports it
}

/// Adds the chunks of the text between two separators.
void add_chunks(TextChunk rest, const TextCuts& cuts, std::vector<TextChunk>& chunks) {
  static_assert(kChunk > 2 * kLongestPiece, "a chunk can be cut");
  do {
    TextChunk chunk = rest;
    if (rest.text.size() > kChunk)
      chunk.text = rest.text.substr(0, last_cut(rest.text.substr(0, kChunk), cuts));
    chunks.push_back(chunk);
    rest.text.remove_prefix(chunk.text.size());
    rest.first += std::ssize(chunk.text);
    rest.begins_document = false;
  } while (!rest.text.empty());
}

/// A part of a file, which begins at its byte `first`.
struct TextBlock {
  std::string_view text{};
  int64_t first = 0;
  bool begins = false, ends = false;  ///< `text` starts or ends the file
};

std::vector<TextChunk> chunks_of(TextBlock block, const TextCuts& cuts) {
  std::vector<TextChunk> chunks;
  for (bool begins = block.begins;;) {
    const size_t at = cuts.separator.empty() ? block.text.npos : block.text.find(cuts.separator);
    const bool last = at == block.text.npos;
    const std::string_view document = block.text.substr(0, at);
    // A separator at the very beginning or end of a file adds no empty document.
    const bool none = document.empty() && (!begins || (last ? block.ends : block.begins));
    if (!none) add_chunks({document, block.first, begins}, cuts, chunks);
    if (last) return chunks;
    const size_t passed = at + cuts.separator.size();
    block.text.remove_prefix(passed);
    block.first += static_cast<int64_t>(passed);
    block.begins = false;
    begins = true;
  }
}

// Calls look(file, chunks) for block after block; chunks are views that end with the call. A
// document begins at the start of a file and after each separator that neither begins nor ends the
// file; two separators in a row enclose an empty document, whose chunk is empty.
void for_each_block(
    const TextRange& range, const TextCuts& cuts,
    const std::function<void(const std::string& file, std::span<const TextChunk>)>& look) {
  int64_t begin = 0;  // start of the file
  for (const std::filesystem::path& path : range.files) {
    const FileBytes file = FileBytes::open(path);
    const int64_t end = std::min(range.last - begin, file.size());
    int64_t at = std::max<int64_t>(0, range.first - begin);
    begin += file.size();
    std::string block;
    const bool begins = at == 0;
    if (begins && !cuts.with_marks) at = std::min(end, mark_bytes(file));
    for (bool first = begins; at < end;) {
      const auto more = static_cast<size_t>(std::min(kTextBlock, end - at));
      const size_t kept = block.size();
      block.resize(kept + more);
      file.read(at, {reinterpret_cast<uint8_t*>(block.data()) + kept, more});
      at += static_cast<int64_t>(more);
      const size_t cut = at == end ? block.size() : last_cut(block, cuts);
      if (cut == 0) continue;  // more of the file may have a place
      look(file.name(), chunks_of({.text = std::string_view(block).substr(0, cut),
                                   .first = at - std::ssize(block),
                                   .begins = first,
                                   .ends = at == end},
                                  cuts));
      block.erase(0, cut);
      first = false;
    }
  }
}

// Returns the first byte of the first character at or after `byte`, counted over all files.
int64_t character_from(const std::vector<std::filesystem::path>& files, int64_t byte) {
  int64_t begin = 0;
  for (const std::filesystem::path& path : files) {
    const FileBytes file = FileBytes::open(path);
    const int64_t at = byte - begin;
    begin += file.size();
    if (at >= file.size()) continue;
    std::vector<uint8_t> next(static_cast<size_t>(std::min<int64_t>(4, file.size() - at)));
    file.read(at, next);
    for (const uint8_t one : next)
      if (continues_character(static_cast<char>(one)))
        ++byte;
      else
        break;
    return byte;
  }
  return byte;
}

struct NamedRange {
  std::string part;
  TextRange range;
};

/// Returns the parts of the text, as bytes counted over all files.
std::vector<NamedRange> part_ranges(const TokenizeSpec& spec) {
  const bool bytes =
      spec.files.empty() ? spec.kind == "bytes" : read_tokenizer(spec.files)->kind() == "bytes";
  int64_t all = 0;
  for (const fs::path& input : spec.inputs) {
    const FileBytes file = bytes ? open_text(input) : open_utf8(input);
    if (file.size() == 0) throw BadFile("{}: is empty: leave it out", file.name());
    all += file.size();
  }
  if (spec.validation == 0) return {{spec.part, {spec.inputs, 0, all}}};
  const int64_t cut = character_from(
      spec.inputs, static_cast<int64_t>(static_cast<double>(all) * (1 - spec.validation)));
  if (cut == 0 || cut == all)
    throw ConfigError(fmt::format(
        "a share of {} of {} bytes leaves nothing for one of the two parts: change --validation",
        spec.validation, all));
  return {{spec.part, {spec.inputs, 0, cut}}, {"validation", {spec.inputs, cut, all}}};
}

std::unique_ptr<Tokenizer> train_characters(const TokenizeSpec& spec, const TextRange& text,
                                            const TextCuts& cuts) {
  std::vector<bool> seen(0x110000, false);
  for_each_block(text, cuts, [&](const std::string& file, std::span<const TextChunk> chunks) {
    for (const TextChunk& chunk : chunks)
      for (size_t at = 0; at < chunk.text.size();) {
        const Utf8Character character = first_character(chunk.text.substr(at));
        if (character.bytes == 0)
          throw BadFile(
              "{}: byte {} (0x{:02x}) is no UTF-8: convert the text, or use --tokenizer bytes",
              file, chunk.first + static_cast<int64_t>(at), static_cast<uint8_t>(chunk.text[at]));
        seen[character.code] = true;
        at += character.bytes;
      }
  });
  std::vector<char32_t> characters;
  for (char32_t code = 0; code < seen.size(); ++code)
    if (seen[code]) characters.push_back(code);
  return character_tokenizer(std::move(characters), !spec.separator.empty());
}

std::unique_ptr<Tokenizer> train_pairs(const TokenizeSpec& spec, const TextRange& text,
                                       const TextCuts& cuts) {
  PieceCounts all;
  std::mutex mutex;
  for_each_block(text, cuts, [&](const std::string&, std::span<const TextChunk> chunks) {
    for_each_sample(std::ssize(chunks), spec.threads, [&](int64_t i) {
      PieceCounts own;
      own.add(chunks[static_cast<size_t>(i)].text);
      const std::lock_guard lock(mutex);
      all.add(own);
    });
  });
  return train_byte_pairs(all, spec.vocabulary);
}

std::unique_ptr<Tokenizer> make_tokenizer(const TokenizeSpec& spec, const TextRange& text) {
  if (!spec.files.empty()) return read_tokenizer(spec.files);
  const TextCuts cuts{.anywhere = spec.kind != "bpe",
                      .separator = spec.separator,
                      .with_marks = spec.kind == "bytes"};
  if (spec.kind == "bytes") return byte_tokenizer(!spec.separator.empty());
  if (spec.kind == "characters") return train_characters(spec, text, cuts);
  if (spec.kind == "bpe") return train_pairs(spec, text, cuts);
  throw ConfigError(fmt::format(
      "a tokenizer of '{}' is not known: known are bytes, characters and bpe", spec.kind));
}

/// Writes the token files of a part, one after the other.
class ShardWriter {
 public:
  ShardWriter(const TokenizeSpec& spec, std::string part, const Tokenizer& tokenizer)
      : spec_(spec),
        part_(std::move(part)), header_{.token_bytes = token_bytes_of(tokenizer.size()),
                                        .vocabulary = tokenizer.size(),
                                        .end_token = tokenizer.end_token(),
                                        .tokenizer = tokenizer.identity()} {}

  void write(std::span<const int32_t> tokens) {
    while (!tokens.empty()) {
      if (shards_.empty() || shards_.back()->count() == spec_.shard_tokens) {
        TokenHeader header = header_;
        header.shard = std::ssize(shards_);
        shards_.push_back(std::make_unique<TokenWriter>(
            spec_.to / fmt::format("{}-{:05}.tokens", part_, shards_.size()), header));
      }
      const auto room = static_cast<size_t>(spec_.shard_tokens - shards_.back()->count());
      const size_t count = std::min(room, tokens.size());
      shards_.back()->write(tokens.first(count));
      tokens = tokens.subspan(count);
    }
  }
  /// Returns the number of files.
  int64_t close() {
    for (const auto& shard : shards_) shard->close(std::ssize(shards_));
    return std::ssize(shards_);
  }

 private:
  const TokenizeSpec& spec_;
  std::string part_;
  TokenHeader header_;
  std::vector<std::unique_ptr<TokenWriter>> shards_;
};

TokenizedPart write_part(const TokenizeSpec& spec, const NamedRange& named,
                         const Tokenizer& tokenizer) {
  ShardWriter writer(spec, named.part, tokenizer);
  TokenizedPart part{.part = named.part, .bytes = named.range.last - named.range.first};
  const TextCuts cuts{.anywhere = tokenizer.kind() != "bpe",
                      .separator = spec.separator,
                      .with_marks = tokenizer.kind() == "bytes"};
  for_each_block(named.range, cuts,
                 [&](const std::string& file, std::span<const TextChunk> chunks) {
                   std::vector<std::vector<int32_t>> tokens(chunks.size());
                   for_each_sample(std::ssize(chunks), spec.threads, [&](int64_t i) {
                     const auto at = static_cast<size_t>(i);
                     if (chunks[at].begins_document && tokenizer.end_token() >= 0)
                       tokens[at].push_back(tokenizer.end_token());
                     tokenizer.encode(chunks[at].text, {file, chunks[at].first}, tokens[at]);
                   });
                   for (size_t i = 0; i < chunks.size(); ++i) {
                     part.documents += chunks[i].begins_document ? 1 : 0;
                     part.tokens += std::ssize(tokens[i]);
                     writer.write(tokens[i]);
                   }
                 });
  part.shards = writer.close();
  if (part.tokens == 0)
    throw BadFile("{}: the part '{}' holds separators alone", named.range.files.front().string(),
                  part.part);
  return part;
}

/// A set has one tokenizer, and a part comes from one call.
void refuse_to_mix(const TokenizeSpec& spec, const std::vector<NamedRange>& parts) {
  std::error_code unknown;
  for (const auto& entry : fs::directory_iterator(spec.to, unknown)) {
    const std::string name = entry.path().filename().string();
    for (const NamedRange& part : parts)
      if (name.starts_with(part.part + "-") && name.ends_with(".tokens"))
        throw ConfigError(fmt::format("{} exists: give another folder, or remove this part first",
                                      entry.path().string()));
  }
}

}  // namespace

Tokenized tokenize(const TokenizeSpec& spec) {
  if (spec.inputs.empty()) throw ConfigError("tokenize needs a text");
  if (std::ranges::any_of(spec.separator, [](char c) { return c == ' ' || (c >= 9 && c <= 13); }))
    throw ConfigError(fmt::format(
        "the separator '{}' has white space in it: give a word that stands between documents, such "
        "as <|endoftext|>",
        spec.separator));
  if (spec.part != "train" && spec.files.empty())
    throw ConfigError(fmt::format(
        "the part '{}' is to have the tokens of the training text: give --files, the folder that "
        "was made of it",
        spec.part));
  if (spec.part == "validation" && spec.validation > 0)
    throw ConfigError(
        "the part \"validation\" and a share of the texts that becomes it are one name for two "
        "parts: leave --validation out, or --part");
  const std::vector<NamedRange> parts = part_ranges(spec);
  std::error_code failed;
  fs::create_directories(spec.to, failed);
  if (failed)
    throw IoError(fmt::format("cannot make the folder {}: {}", spec.to.string(), failed.message()));
  refuse_to_mix(spec, parts);
  const auto tokenizer = make_tokenizer(spec, parts.front().range);
  if (has_tokenizer(spec.to) && read_tokenizer(spec.to)->identity() != tokenizer->identity())
    throw ConfigError(
        fmt::format("{} holds another tokenizer: take it with --files {}, or give another folder",
                    (spec.to / "vocab.json").string(), spec.to.string()));
  if (!spec.separator.empty() && tokenizer->end_token() < 0)
    throw ConfigError(fmt::format(
        "{} has no token {}, which would stand for the separator: leave --separator out",
        spec.files.string(), kEndOfText));
  write_tokenizer(*tokenizer, spec.to);
  Tokenized made{
      .kind = std::string(tokenizer->kind()), .vocabulary = tokenizer->size(), .parts = {}};
  for (const NamedRange& part : parts) made.parts.push_back(write_part(spec, part, *tokenizer));
  return made;
}

}  // namespace tutti::data
