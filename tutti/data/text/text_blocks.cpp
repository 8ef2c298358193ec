#include "tutti/data/text/text_blocks.h"

#include <algorithm>

#include "tutti/data/file/file_bytes.h"
#include "tutti/data/file/first_bytes.h"
#include "tutti/data/text/pre_tokens.h"
#include "tutti/data/text/text_source.h"
#include "tutti/data/text/utf8.h"

namespace tutti::data {
namespace {

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

}  // namespace

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

}  // namespace tutti::data
