#include "tutti/data/format/first_text.h"

#include <algorithm>
#include <string>

namespace tutti::data {
namespace {

using namespace std::string_view_literals;

/// At least two lines with as many commas, semicolons or tabs each, and at least one.
bool looks_like_table(std::string_view text) {
  const size_t first = text.find('\n');
  if (first == text.npos) return false;
  const size_t second = text.find('\n', first + 1);
  const std::string_view lines[] = {text.substr(0, first),
                                    text.substr(first + 1, second - first - 1)};
  return std::ranges::any_of(",;\t"sv, [&](char c) {
    const auto count = std::ranges::count(lines[0], c);
    return count > 0 && count == std::ranges::count(lines[1], c);
  });
}

/// Whether the line behind the title is of numbers of eight characters with three decimals.
bool looks_like_amber_text(std::string_view text) {
  const size_t first = text.find('\n');
  if (first == text.npos) return false;
  const size_t second = text.find('\n', first + 1);
  const std::string_view line = text.substr(first + 1, second - first - 1);
  if (line.empty() || line.size() > 80 || line.size() % 8 != 0) return false;
  for (size_t i = 0; i < line.size(); ++i)
    if ((line[i] == '.') != (i % 8 == 4) || (i % 8 > 4 && !(line[i] >= '0' && line[i] <= '9')))
      return false;
  return true;
}

/// The text of a line, counted from 0, without its end; empty where there is none.
std::string_view line_of(std::string_view text, int number) {
  for (; number > 0; --number) {
    const size_t end = text.find('\n');
    if (end == text.npos) return {};
    text.remove_prefix(end + 1);
  }
  text = text.substr(0, text.find('\n'));
  if (text.ends_with('\r')) text.remove_suffix(1);
  return text;
}

bool is_whole_number(std::string_view text) {
  const size_t begin = text.find_first_not_of(' '), end = text.find_last_not_of(' ');
  return begin != text.npos &&
         text.substr(begin, end + 1 - begin).find_first_not_of("0123456789") == text.npos;
}

Content kind_of_molecules(std::string_view text) {
  if (text.starts_with("ITEM: TIMESTEP")) return Content::lammps_text;
  for (const std::string_view record :
       {"HEADER    ", "CRYST1", "ATOM  ", "HETATM", "MODEL   ", "REMARK ", "TITLE     "})
    if (text.starts_with(record)) return Content::pdb_text;
  if (looks_like_amber_text(text)) return Content::amber_text;
  // The number of atoms, and behind it an atom: of GRO in columns with two points at least five
  // apart, of XYZ a name and three numbers.
  const std::string_view third = line_of(text, 2);
  const auto points = std::ranges::count(third, '.');
  if (is_whole_number(line_of(text, 1)) && third.size() >= 44 && points >= 3 &&
      is_whole_number(third.substr(0, 5)))
    return Content::gro_text;
  if (is_whole_number(line_of(text, 0)) && points == 3 &&
      third.find_first_not_of(' ') != third.npos &&
      third.find_first_not_of("0123456789. -+eE") != third.npos)
    return Content::xyz_text;
  return Content::text;
}

}  // namespace

Content kind_of_text(std::string_view text) {
  if (text.starts_with("\xef\xbb\xbf")) text.remove_prefix(3);  // a byte-order mark
  const size_t begin = text.find_first_not_of(" \t\r\n");
  std::string_view body = begin == text.npos ? std::string_view{} : text.substr(begin);
  std::string start(body.substr(0, 16));
  std::ranges::transform(start, start.begin(), [](char c) {
    return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c;
  });
  if (start.starts_with("<!doctype html") || start.starts_with("<html")) return Content::html;
  if (start.starts_with("<?xml"))
    return body.find("<html") == body.npos ? Content::xml : Content::html;
  if (start.starts_with("{") || start.starts_with("["))
    return body.find("\"weight_map\"") != body.npos || body.find(".safetensors\"") != body.npos
               ? Content::parts_index
               : Content::json;
  if (const Content molecules = kind_of_molecules(text); molecules != Content::text)
    return molecules;
  return looks_like_table(text) ? Content::csv : Content::text;
}

}  // namespace tutti::data
