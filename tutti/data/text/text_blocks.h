#pragma once
// Private to tokenize.cpp: cuts a long text into blocks that are encoded independently.

#include <cstdint>
#include <filesystem>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace tutti::data {

/// A part of a text that no piece crosses.
struct TextChunk {
  std::string_view text{};
  int64_t first = 0;  ///< its first byte in the file
  bool begins_document = false;
};

struct TextRange {
  std::vector<std::filesystem::path> files;
  int64_t first = 0, last = 0;  ///< bytes, counted over all files
};

struct TextCuts {
  bool anywhere = false;    ///< cut between any two characters; otherwise only between pieces
  std::string separator{};  ///< between documents; empty: none
  bool with_marks = false;  ///< a byte-order mark at a file's beginning is part of the text
};

/// Calls look(file, chunks) for block after block; chunks are views that end with the call. A
/// document begins at the start of a file and after each separator that neither begins nor ends the
/// file; two separators in a row enclose an empty document, whose chunk is empty.
void for_each_block(
    const TextRange& range, const TextCuts& cuts,
    const std::function<void(const std::string& file, std::span<const TextChunk>)>& look);

/// Returns the first byte of the first character at or after `byte`, counted over all files.
int64_t character_from(const std::vector<std::filesystem::path>& files, int64_t byte);

}  // namespace tutti::data
