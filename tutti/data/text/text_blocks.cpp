#include "tutti/data/text/text_blocks.h"

#include <algorithm>

#include "tutti/data/format/file_bytes.h"
#include "tutti/data/text/pre_tokens.h"
#include "tutti/data/text/utf8.h"

namespace tutti::data {
namespace {

constexpr int64_t kTextBlock = 16 << 20;
constexpr size_t kChunk = 256 << 10;

/// The last place up to the end of `text` where it may be cut; 0: there is none.
size_t last_cut(std::string_view text, const TextCuts& cuts) {
  if (!cuts.anywhere || !cuts.separator.empty()) return last_safe_cut(text);
  size_t cut = text.size();
  for (int i = 0; i < 4 && cut > 0; ++i)
    if (!continues_character(text[--cut])) return cut;
  return text.size();  // no UTF-8: said where it is encoded
}

/// Adds the chunks of a text between two separators.
void add_chunks(std::string_view text, bool begins, const TextCuts& cuts,
                std::vector<TextChunk>& chunks) {
  do {
    size_t bytes = text.size();
    for (size_t size = kChunk; size < text.size(); size *= 2)
      if (const size_t cut = last_cut(text.substr(0, size), cuts); cut > 0) {
        bytes = cut;
        break;
      }
    chunks.push_back({text.substr(0, bytes), begins});
    begins = false;
    text.remove_prefix(bytes);
  } while (!text.empty());
}

std::vector<TextChunk> chunks_of(std::string_view block, bool begins, const TextCuts& cuts) {
  std::vector<TextChunk> chunks;
  while (!block.empty() || begins) {
    const size_t at = cuts.separator.empty() ? block.npos : block.find(cuts.separator);
    const std::string_view document = block.substr(0, at);
    // A file that begins with a separator begins one document, not two.
    if (!document.empty() || (begins && at == block.npos))
      add_chunks(document, begins, cuts, chunks);
    if (at == block.npos) break;
    block.remove_prefix(at + cuts.separator.size());
    begins = true;
  }
  return chunks;
}

}  // namespace

void for_each_block(
    const TextRange& range, const TextCuts& cuts,
    const std::function<void(const std::string& file, std::span<const TextChunk>)>& look) {
  int64_t begin = 0;  // of the file
  for (const std::filesystem::path& path : range.files) {
    const FileBytes file = FileBytes::open(path);
    const int64_t end = std::min(range.last - begin, file.size());
    int64_t at = std::max<int64_t>(0, range.first - begin);
    begin += file.size();
    std::string block;
    for (bool first = at == 0; at < end;) {
      const auto more = static_cast<size_t>(std::min(kTextBlock, end - at));
      const size_t kept = block.size();
      block.resize(kept + more);
      file.read(at, {reinterpret_cast<uint8_t*>(block.data()) + kept, more});
      at += static_cast<int64_t>(more);
      const size_t cut = at == end ? block.size() : last_cut(block, cuts);
      if (cut == 0) continue;  // with more of the file there may be a place
      look(file.name(), chunks_of(std::string_view(block).substr(0, cut), first, cuts));
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
