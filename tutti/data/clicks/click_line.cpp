#include "tutti/data/clicks/click_line.h"

#include <fmt/format.h>
#include <xxhash.h>

#include <algorithm>
#include <charconv>
#include <cmath>

#include "tutti/data/file/file_bytes.h"
#include "tutti/data/file/first_bytes.h"

namespace tutti::data {
namespace {

using ColumnKind = ClickColumns::Kind;

constexpr int64_t kCriteoNumbers = 13, kCriteoCategories = 26;
constexpr int64_t kCriteoColumns = 1 + kCriteoNumbers + kCriteoCategories;

/// Returns the length of the quoted text at the beginning of `text`; 0 where no quote ends it
/// before a separator or the end.
size_t quoted_length(std::string_view text, char separator) {
  for (size_t at = 1; (at = text.find('"', at)) != text.npos; at += 2) {
    const bool last = at + 1 == text.size();
    if (last || text[at + 1] == separator) return at + 1;
    if (text[at + 1] != '"') return 0;
  }
  return 0;
}

/// Takes the text before the next separator from `rest`; false after the last.
bool next_part(std::string_view& rest, char separator, std::string_view& text) {
  if (rest.data() == nullptr) return false;
  const size_t end = rest.find(separator);
  text = rest.substr(0, end);
  rest = end == rest.npos ? std::string_view{} : rest.substr(end + 1);
  return true;
}

/// Does the same for columns, which may be quoted. Text with quotes in it is valid until the
/// thread's next call.
bool next_column(std::string_view& rest, char separator, std::string_view& text) {
  const size_t quoted = rest.starts_with('"') ? quoted_length(rest, separator) : 0;
  if (quoted == 0) return next_part(rest, separator, text);
  text = rest.substr(0, quoted);
  rest = quoted == rest.size() ? std::string_view{} : rest.substr(quoted + 1);
  text = text.substr(1, text.size() - 2);
  if (text.find('"') == text.npos) return true;
  thread_local std::string plain;
  plain.clear();
  for (size_t i = 0; i < text.size(); ++i) {
    plain += text[i];
    if (text[i] == '"') ++i;
  }
  text = plain;
  return true;
}

std::vector<std::string> split_columns(std::string_view line, char separator) {
  std::vector<std::string> columns;
  for (std::string_view rest = line, text; next_column(rest, separator, text);)
    columns.emplace_back(text);
  return columns;
}

std::string lower(std::string_view text) {
  std::string name(text);
  for (char& c : name)
    if ('A' <= c && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  return name;
}

/// Says whether the name is like "I7", with letter 'i'.
bool is_numbered(std::string_view name, char letter) {
  return name.size() > 1 && name[0] == letter &&
         std::ranges::all_of(name.substr(1), [](char c) { return '0' <= c && c <= '9'; });
}

ColumnKind column_kind(const std::string& name, bool avazu) {
  if (name == "label" || name == "click") return ColumnKind::label;
  if (avazu)
    return name == "id"     ? ColumnKind::none
           : name == "hour" ? ColumnKind::hour
                            : ColumnKind::category;
  if (is_numbered(name, 'i')) return ColumnKind::number;
  return is_numbered(name, 'c') ? ColumnKind::category : ColumnKind::none;
}

/// Returns a tab if there is one, else the more frequent of the others.
char separator_of(std::string_view line) {
  if (line.find('\t') != line.npos) return '\t';
  return std::ranges::count(line, ';') > std::ranges::count(line, ',') ? ';' : ',';
}

/// Shortens text for messages, and replaces characters that are not printable.
std::string shown(std::string_view text) {
  std::string out;
  for (const char c : text.substr(0, 40)) out += ' ' <= c && c <= '~' ? c : '?';
  return out + (text.size() > 40 ? "..." : "");
}

[[noreturn]] void refuse_column(const std::string& place, int64_t column, std::string_view expected,
                                std::string_view found) {
  throw BadFile("{}: column {}: expected {}, found '{}': mend or remove the line", place,
                column + 1, expected, shown(found));
}

bool parse_whole(std::string_view text, int32_t& value) {
  const char* const end = text.data() + text.size();
  const auto [at, error] = std::from_chars(text.data(), end, value);
  if (error == std::errc{} && at == end) return true;
  double number = 0;
  const auto real = std::from_chars(text.data(), end, number);
  if (real.ec != std::errc{} || real.ptr != end || number != std::trunc(number) ||
      std::abs(number) > 2147483647.0)
    return false;
  value = static_cast<int32_t>(number);
  return true;
}

constexpr char kBetween = '|', kBeforeWeight = ':';

/// A column's categories and their places in the fields.
struct ClickBag {
  int64_t column = 0, place = 0;  // among all columns; among the places of categories
  size_t category = 0;            // index among the columns of categories
};

int32_t row_of(const ClickTables& tables, size_t category, std::string_view text) {
  return tables.vocabulary
             ? tables.vocabulary->row(category, text)
             : category_row(text, static_cast<int64_t>(category), tables.rows[category]);
}

void read_bag(const ClickTables& tables, const ClickBag& bag, std::string_view text,
              const std::string& place, const ClickFields& out) {
  const int64_t most = tables.bags[bag.category];
  const auto places =
      out.categories.subspan(static_cast<size_t>(bag.place), static_cast<size_t>(most));
  std::ranges::fill(places, -1);
  size_t next = 0;
  std::string_view one;
  for (std::string_view rest = text; !text.empty() && next_part(rest, kBetween, one); ++next) {
    if (next == places.size())
      refuse_column(place, bag.column, fmt::format("{} categories at most (data.bag_length)", most),
                    text);
    float weight = 1;
    const size_t colon = tables.weighted ? one.rfind(kBeforeWeight) : one.npos;
    if (colon != one.npos) {
      const std::string_view number = one.substr(colon + 1);
      const auto [at, error] =
          std::from_chars(number.data(), number.data() + number.size(), weight);
      if (error != std::errc{} || at != number.data() + number.size() || !std::isfinite(weight))
        refuse_column(place, bag.column, "a category, ':' and its weight", one);
      one = one.substr(0, colon);
    }
    places[next] = row_of(tables, bag.category, one);
    if (!out.weights.empty()) out.weights[static_cast<size_t>(bag.place) + next] = weight;
  }
}

}  // namespace

ClickColumns click_columns(std::string_view first_line, const std::string& file,
                           ClickLabels labels) {
  first_line = without_mark(first_line);
  ClickColumns columns;
  columns.separator = separator_of(first_line);
  const bool required = labels == ClickLabels::required;
  std::vector<std::string> names;
  for (const std::string& text : split_columns(first_line, columns.separator))
    names.push_back(lower(text));
  const auto has = [&](std::string_view name) {
    return std::ranges::find(names, name) != names.end();
  };
  columns.header = has("id") || has("label") || has("click") || has("hour") ||
                   (!required && has("i1") && has("c1"));
  const bool criteo = std::ssize(names) == kCriteoColumns,
             unlabelled = std::ssize(names) == kCriteoColumns - 1;
  if (columns.header) {
    for (const std::string& name : names) columns.kinds.push_back(column_kind(name, has("hour")));
    const int64_t found = std::ranges::count(columns.kinds, ColumnKind::label);
    if (found > 1 || (required && found == 0))
      throw BadFile(
          "{}: expected one column 'label' or 'click' in the first line, found {}: a file without "
          "labels, as those for a competition's answers are, cannot be learned from; name it for "
          "`tutti infer --input`",
          file, found);
  } else if (unlabelled && required) {
    throw BadFile(
        "{}: the first line has 39 columns: Criteo's without the label, as Kaggle's test.txt is, "
        "which cannot be learned from: name it for `tutti infer --input`, and logs with labels (40 "
        "columns) here",
        file);
  } else if (criteo || unlabelled) {
    columns.kinds.assign(names.size(), ColumnKind::category);
    const auto numbers = columns.kinds.begin() + (criteo ? 1 : 0);
    if (criteo) columns.kinds[0] = ColumnKind::label;
    std::fill_n(numbers, kCriteoNumbers, ColumnKind::number);
  } else {
    throw BadFile(
        "{}: the first line has {} column{} between {}: expected Criteo's {} between tabs (label, "
        "13 numbers, 26 categories{}), or the names of the columns, with 'label' or 'click'",
        file, names.size(), names.size() == 1 ? "" : "s",
        columns.separator == '\t'  ? "tabs"
        : columns.separator == ',' ? "commas"
                                   : "semicolons",
        kCriteoColumns, required ? "" : "; the label may be missing");
  }
  columns.categories = std::ranges::count(columns.kinds, ColumnKind::category);
  columns.numbers = std::ranges::count(columns.kinds, ColumnKind::number) +
                    std::ranges::count(columns.kinds, ColumnKind::hour);
  if (columns.categories == 0 || columns.numbers == 0)
    throw BadFile(
        "{}: the first line names {} numbers (I1, I2 ... or hour) and {} categories (C1, C2 ...): "
        "a click log has both",
        file, columns.numbers, columns.categories);
  return columns;
}

int32_t category_row(std::string_view text, int64_t column, int64_t rows) {
  if (text.empty()) return 0;
  const uint64_t hash = XXH64(text.data(), text.size(), static_cast<uint64_t>(column));
  return static_cast<int32_t>(1 + hash % static_cast<uint64_t>(rows - 1));
}

void read_click_line(const ClickColumns& columns, std::string_view line, const ClickTables& tables,
                     const std::string& place, const ClickFields& out) {
  size_t column = 0, number = 0, category = 0;
  int64_t next = 0;  // next place of a category
  std::ranges::fill(out.weights, 0.0f);
  *out.label = 0;
  if (line.empty()) throw BadFile("{}: the line is empty: remove it", place);
  for (std::string_view rest = line, text; next_column(rest, columns.separator, text); ++column) {
    if (column >= columns.kinds.size()) continue;  // only counted
    const auto at = static_cast<int64_t>(column);
    int32_t value = 0;
    switch (columns.kinds[column]) {
      case ColumnKind::none: break;
      case ColumnKind::label:
        if (!parse_whole(text, value) || value < 0 || value > 1)
          refuse_column(place, at, "the label 0 or 1", text);
        *out.label = value == 1;
        break;
      case ColumnKind::number:
        if (!text.empty() && !parse_whole(text, value))
          refuse_column(place, at, "a whole number of 32 bits, or nothing", text);
        out.numbers[number++] = value;
        break;
      case ColumnKind::hour:
        if (text.find_first_not_of("0123456789") < 8 || !parse_whole(text, value) || value < 0 ||
            value > 99'999'999 || text.size() < 8 || value % 100 > 23)
          refuse_column(place, at, "an hour as YYMMDDHH", text);
        out.numbers[number++] = value % 100;
        break;
      case ColumnKind::category:
        if (tables.bags[category] == 1 && !tables.weighted)
          out.categories[static_cast<size_t>(next)] = row_of(tables, category, text);
        else
          read_bag(tables, {at, next, category}, text, place, out);
        next += tables.bags[category++];
        break;
    }
  }
  if (column == columns.kinds.size()) return;
  throw BadFile("{}: expected {} columns, found {}: the file is damaged or was cut off", place,
                columns.kinds.size(), column);
}

void for_each_category(const ClickColumns& columns, std::string_view line,
                       const std::vector<int64_t>& bags,
                       const std::function<void(size_t column, std::string_view text)>& look) {
  size_t column = 0, category = 0;
  for (std::string_view rest = line, text; next_column(rest, columns.separator, text); ++column) {
    if (column == columns.kinds.size()) return;
    if (columns.kinds[column] != ColumnKind::category) continue;
    const size_t c = category++;
    if (bags[bags.size() == 1 ? 0 : c] == 1) {
      look(c, text);
      continue;
    }
    for (std::string_view bag = text, one; next_part(bag, kBetween, one);) look(c, one);
  }
}

}  // namespace tutti::data
