#include "tutti/data/file/text_file.h"

#include <fmt/format.h>

#include <cerrno>
#include <istream>
#include <vector>

#include "tutti/data/file/first_bytes.h"

namespace tutti::data {
namespace {

std::string why_not(const FirstBytes& found, std::string_view name, std::string_view expected) {
  if (is_plain_text(found.content) || found.content == Content::empty) return {};
  return fmt::format("{}: expected {}, found {}: {}", name, expected, found.name, found.remedy);
}

}  // namespace

std::string why_no_text(std::string_view text, std::string_view name, std::string_view expected) {
  const std::string_view head = text.substr(0, kFirstBytes);
  const std::vector<uint8_t> bytes(head.begin(), head.end());
  return why_not(first_bytes_of(bytes, std::ssize(text)), name, expected);
}

std::string why_no_text(const FileBytes& file, std::string_view expected) {
  return why_not(first_bytes_of(file), file.name(), expected);
}

std::string plain_lines(std::string text) {
  text.erase(0, text.size() - without_mark(text).size());
  size_t kept = 0;
  for (size_t at = 0; at < text.size(); ++at)
    if (text.compare(at, 2, "\r\n") != 0) text[kept++] = text[at];
  text.resize(kept);
  return text;
}

std::string whole_text(std::istream& file, std::string_view name, const SmallText& terms) {
  constexpr size_t kPiece = size_t{1} << 16;
  std::string text;
  while (file) {
    const size_t before = text.size();
    text.resize(before + (before == 0 ? kFirstBytes : kPiece));
    errno = 0;
    file.read(text.data() + before, std::ssize(text) - static_cast<ptrdiff_t>(before));
    if (file.bad()) throw IoError(fmt::format("{}: cannot be read: {}", name, file_error(errno)));
    text.resize(before + static_cast<size_t>(file.gcount()));
    if (before == 0)
      if (const std::string why = why_no_text(text, name, terms.expected); !why.empty())
        throw BadFile(why);
    if (std::ssize(text) > terms.most)
      throw IoError(fmt::format(
          "{}: expected {}, found more than {} bytes, which are the most: give another file", name,
          terms.expected, terms.most));
  }
  return plain_lines(std::move(text));
}

std::optional<std::string> read_small_text(const std::filesystem::path& path,
                                           const SmallText& terms) {
  std::ifstream file = open_small_text(path, terms);
  if (!file.is_open()) return std::nullopt;
  return whole_text(file, path.string(), terms);
}

}  // namespace tutti::data
