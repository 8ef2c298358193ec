#include "tutti/data/clicks/click_vocabulary.h"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <fstream>

#include "tutti/base/error.h"
#include "tutti/base/own_file.h"
#include "tutti/base/small_text.h"
#include "tutti/data/clicks/click_line.h"
#include "tutti/data/file/file_bytes.h"
#include "tutti/data/file/first_bytes.h"
#include "tutti/data/file/text_file.h"

namespace tutti::data {
namespace {

constexpr std::string_view kFirstLine = "tutti click vocabulary 1",
                           kFirstWords = "tutti click vocabulary ";
constexpr std::string_view kColumn = "column ";
constexpr int64_t kMostBytes = int64_t{4} << 30;

/// Allows look-ups by a view.
struct TextHash {
  using is_transparent = void;
  size_t operator()(std::string_view text) const { return std::hash<std::string_view>()(text); }
};
using TextCounts = std::unordered_map<std::string, int64_t, TextHash, std::equal_to<>>;

void count(std::string_view text, TextCounts& counts) {
  if (text.empty()) return;
  if (const auto at = counts.find(text); at != counts.end())
    ++at->second;
  else
    counts.emplace(text, 1);
}

/// Returns the most frequent first; equally frequent ones in the order of their bytes.
std::vector<std::string> frequent(const TextCounts& counts, int64_t minimum) {
  std::vector<std::pair<int64_t, std::string>> list;
  for (const auto& [text, times] : counts)
    if (times >= minimum) list.emplace_back(-times, text);
  std::ranges::sort(list);
  std::vector<std::string> words;
  for (auto& [times, text] : list) words.push_back(std::move(text));
  return words;
}

/// Returns the first bytes of a file that has just been opened, and leaves them to be read. A pipe
/// cannot be reopened or rewound, but the stream keeps what it has read at once.
std::string beginning_of(std::istream& file) {
  file.peek();
  const std::streamsize held = std::max<std::streamsize>(file.rdbuf()->in_avail(), 0);
  std::string bytes(std::min(static_cast<size_t>(held), kFirstBytes), '\0');
  file.rdbuf()->sgetn(bytes.data(), std::ssize(bytes));
  for (size_t i = 0; i < bytes.size(); ++i) file.rdbuf()->sungetc();
  return bytes;
}

}  // namespace

ClickVocabulary::ClickVocabulary(std::vector<std::vector<std::string>> words)
    : words_(std::move(words)), rows_(words_.size()) {
  for (size_t c = 0; c < words_.size(); ++c)
    for (size_t i = 0; i < words_[c].size(); ++i)
      rows_[c].emplace(words_[c][i], static_cast<int32_t>(i + 1));
}

ClickVocabulary ClickVocabulary::of_logs(const std::vector<std::filesystem::path>& logs,
                                         int64_t minimum, const std::vector<int64_t>& bags,
                                         bool weighted) {
  std::vector<TextCounts> counts;
  for (const std::filesystem::path& log : logs) {
    expect_regular_file(log);
    std::ifstream file(log, std::ios::binary);
    if (!file) throw BadFile("{}: cannot be read: {}", log.string(), file_error(errno));
    std::string line;
    ClickColumns columns;
    for (int64_t number = 1; std::getline(file, line); ++number) {
      if (line.ends_with('\r')) line.pop_back();
      if (number == 1) line = without_mark(line);
      if (number == 1) {
        columns = click_columns(line, log.string());
        counts.resize(static_cast<size_t>(columns.categories));
        if (bags.size() != 1 && std::ssize(bags) != columns.categories)
          throw ConfigError(fmt::format(
              "data.bag_length has {} numbers, and '{}' {} columns of categories: give one for "
              "all, or one for each",
              bags.size(), log.string(), columns.categories));
        if (columns.header) continue;
      }
      for_each_category(columns, line, bags, [&](size_t column, std::string_view text) {
        if (column < counts.size())
          count(weighted ? text.substr(0, text.rfind(':')) : text, counts[column]);
      });
    }
    if (file.bad()) throw BadFile("{}: cannot be read: {}", log.string(), file_error(errno));
  }
  std::vector<std::vector<std::string>> words;
  for (const TextCounts& of_column : counts) words.push_back(frequent(of_column, minimum));
  return ClickVocabulary(std::move(words));
}

ClickVocabulary ClickVocabulary::read(const std::filesystem::path& path) {
  std::ifstream file = open_small_text(path, {.expected = "a vocabulary", .most = kMostBytes});
  if (!file.is_open())
    throw BadFile(
        "{}: cannot be read: {}; `tutti data vocabulary` with the configuration writes it",
        path.string(), file_error(errno));
  const std::string first = beginning_of(file);
  if (const std::string why = why_no_text(first, path.string(), "a vocabulary of clicks");
      !why.empty())
    throw BadFile(why);
  std::vector<std::vector<std::string>> words;
  std::string line;
  int64_t number = 0;
  bool returns = false;  // carriage returns before line ends, as programs of Windows write them
  const auto refuse = [&](std::string_view expected) {
    throw BadFile("{}:{}: expected {}: it is no vocabulary, or is cut off", path.string(), number,
                  expected);
  };
  const auto next = [&] {
    const bool there = static_cast<bool>(std::getline(file, line));
    if (++number == 1) {
      returns = line.ends_with('\r');
      line = without_mark(line);
    }
    if (returns && line.ends_with('\r')) line.pop_back();
    return there;
  };
  if (!next() || line != kFirstLine) {
    if (line.starts_with(kFirstWords))
      throw BadFile(
          "{}: '{}' was written by another version of Tutti, and this one reads '{}': make it anew "
          "with `tutti data vocabulary`",
          path.string(), line, kFirstLine);
    refuse(fmt::format("'{}'", kFirstLine));
  }
  while (next()) {
    int64_t rows = 0;
    const char* const end = line.data() + line.size();
    if (!line.starts_with(kColumn)) refuse("'column' and the number of its categories");
    const auto read = std::from_chars(line.data() + kColumn.size(), end, rows);
    if (read.ec != std::errc() || read.ptr != end || rows < 0)
      refuse("'column' and the number of its categories");
    std::vector<std::string>& column = words.emplace_back();
    for (int64_t i = 0; i < rows; ++i) {
      if (!next()) refuse("a category");
      column.push_back(line);
    }
  }
  if (file.bad())
    throw IoError(fmt::format("{}: cannot be read: {}", path.string(), file_error(errno)));
  return ClickVocabulary(std::move(words));
}

void ClickVocabulary::write(const std::filesystem::path& path) const {
  auto file = output_stream(path);
  file << kFirstLine << '\n';
  for (const std::vector<std::string>& column : words_) {
    file << kColumn << column.size() << '\n';
    for (const std::string& word : column) file << word << '\n';
  }
  file.close();
  if (!file) throw IoError(fmt::format("{}: cannot write: {}", path.string(), file_error(errno)));
}

int32_t ClickVocabulary::row(size_t column, std::string_view text) const {
  const auto at = rows_[column].find(text);
  return at == rows_[column].end() ? 0 : at->second;
}

}  // namespace tutti::data
