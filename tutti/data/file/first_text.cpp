#include "tutti/data/file/first_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <string>

namespace tutti::data {
namespace {

using namespace std::string_view_literals;

/// Returns line `number`, counted from 0, without its end; empty where there is none.
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

/// Returns the character between the columns of a table, which occurs equally often in its first
/// two lines; 0: it is no table. Numbers may contain commas, so the comma is tried last.
char separator_of_table(std::string_view text) {
  if (text.find('\n') == text.npos) return 0;
  for (const char c : "\t;,"sv)
    if (const auto count = std::ranges::count(line_of(text, 0), c);
        count > 0 && count == std::ranges::count(line_of(text, 1), c))
      return c;
  return 0;
}

/// Says whether each column of a line is a number, with `point` before its decimals.
bool is_of_numbers(std::string_view line, char separator, char point) {
  for (std::string_view rest = line;;) {
    std::string column(rest.substr(0, rest.find(separator)));
    std::ranges::replace(column, point, '.');
    char* end = nullptr;
    std::strtod(column.c_str(), &end);
    if (end == column.c_str() || std::string_view(end).find_first_not_of(' ') != rest.npos)
      return false;
    if (rest.find(separator) == rest.npos) return true;
    rest.remove_prefix(rest.find(separator) + 1);
  }
}

/// Says whether the line after the title has numbers of eight characters with three decimals.
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
  // The number of atoms comes first, then an atom: in GRO, columns with two points at least five
  // apart; in XYZ, a name and three numbers.
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

bool begins_with_mark(std::string_view text, std::string_view mark, size_t character) {
  return text.starts_with(mark) && text.size() % character == 0;
}

/// Says whether characters of `bytes` bytes, in either order, are all zeros but one byte.
bool has_letters_of(std::string_view text, size_t bytes) {
  text = text.substr(0, 64);
  if (text.size() < 4 * bytes) return false;
  const size_t letter = text[0] == 0 ? bytes - 1 : 0;
  for (size_t i = 0; i < text.size() / bytes * bytes; ++i)
    if (const char c = text[i];
        i % bytes != letter ? c != 0
                            : !(c == '\n' || c == '\r' || c == '\t' || (c >= ' ' && c <= '~')))
      return false;
  return true;
}

}  // namespace

bool looks_like_text(std::string_view text) {
  return std::ranges::none_of(text, [](char c) {
    const auto byte = static_cast<uint8_t>(c);
    return byte < 0x20 && c != '\n' && c != '\r' && c != '\t' && c != '\f' && c != 0x1b;
  });
}

Content kind_of_wide_text(std::string_view text) {
  // The longer mark begins with the shorter one, so it is tried first.
  if (begins_with_mark(text, "\xff\xfe\0\0"sv, 4) || begins_with_mark(text, "\0\0\xfe\xff"sv, 4) ||
      has_letters_of(text, 4))
    return Content::utf32;
  if (begins_with_mark(text, "\xff\xfe"sv, 2) || begins_with_mark(text, "\xfe\xff"sv, 2) ||
      has_letters_of(text, 2))
    return Content::utf16;
  return Content::unknown;
}

Content kind_of_text(std::string_view text) {
  text = without_mark(text);
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
  return separator_of_table(text) != 0 ? Content::csv : Content::text;
}

std::string remedy_of_table(std::string_view text) {
  text = without_mark(text);
  const char separator = separator_of_table(text);
  const std::string_view first = line_of(text, 0), second = line_of(text, 1);
  const std::string quoted = separator == '\t' ? "'\\t'" : fmt::format("'{}'", separator);
  if (is_of_numbers(second, separator, '.'))
    return fmt::format(
        "read it with numpy.loadtxt(FILE, delimiter={}{}) and save it with numpy.save", quoted,
        is_of_numbers(first, separator, '.') ? "" : ", skiprows=1");
  const bool comma = separator != ',' && is_of_numbers(second, separator, ',');
  return fmt::format(
      "read it with pandas.read_csv(FILE, sep={}{}{}) and save its columns of numbers with "
      "numpy.save",
      quoted, comma ? ", decimal=','" : "",
      comma && is_of_numbers(first, separator, ',') ? ", header=None" : "");
}

}  // namespace tutti::data
