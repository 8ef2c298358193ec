#pragma once
// Private to tokenize.cpp: a long text in blocks that are encoded apart.

#include <cstdint>
#include <filesystem>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace tutti::data {

/// A part of a text that no piece of text reaches beyond.
struct TextChunk {
  std::string_view text{};
  int64_t first = 0;  ///< its first byte in the file
  bool begins_document = false;
};

struct TextRange {
  std::vector<std::filesystem::path> files;
  int64_t first = 0, last = 0;  ///< bytes of all files together
};

struct TextCuts {
  bool anywhere = false;  ///< between any two characters; otherwise where first_piece() may be cut
  std::string separator{};  ///< of documents; empty: none
  bool with_marks = false;  ///< a byte-order mark at a file's beginning is part of the text
};

/// Calls look(file, chunks) for block after block; chunks are views that end with the call. A file
/// begins a document, and so does what is behind a separator, unless that begins or ends the file:
/// two separators in a row have an empty document between them, whose chunk is empty.
void for_each_block(
    const TextRange& range, const TextCuts& cuts,
    const std::function<void(const std::string& file, std::span<const TextChunk>)>& look);

/// The first byte of a character at `byte` or behind it, counted over all files.
int64_t character_from(const std::vector<std::filesystem::path>& files, int64_t byte);

}  // namespace tutti::data
