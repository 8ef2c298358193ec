#include "tutti/data/format/text_file.h"

#include <fmt/format.h>

#include <cerrno>
#include <istream>
#include <iterator>
#include <vector>

#include "tutti/data/format/first_bytes.h"

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

std::string whole_text(std::istream& file, std::string_view name, std::string_view expected) {
  std::string text(kFirstBytes, '\0');
  errno = 0;
  file.read(text.data(), std::ssize(text));
  if (file.bad()) throw IoError(fmt::format("{}: cannot be read: {}", name, file_error(errno)));
  text.resize(static_cast<size_t>(file.gcount()));
  if (const std::string why = why_no_text(text, name, expected); !why.empty()) throw BadFile(why);
  text.append(std::istreambuf_iterator<char>(file), {});
  return plain_lines(std::move(text));
}

}  // namespace tutti::data
