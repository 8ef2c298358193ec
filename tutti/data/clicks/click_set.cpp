#include "tutti/data/clicks/click_set.h"

#include <algorithm>
#include <string_view>

#include "tutti/base/error.h"
#include "tutti/data/file/file_bytes.h"
#include "tutti/data/file/first_bytes.h"

namespace tutti::data {
namespace {

/// Distance between lines whose places are kept: a sample reads at most as many lines.
constexpr int64_t kStride = 16;
/// No log has longer lines; another kind of file would be read whole into memory.
constexpr int64_t kLongestLine = 1 << 16;

std::string_view text_of(std::span<const uint8_t> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

std::string_view without_return(std::string_view line) {
  if (line.ends_with('\r')) line.remove_suffix(1);
  return line;
}

/// Returns the first line, without its end.
std::string first_line(const FileBytes& file) {
  std::vector<uint8_t> head(static_cast<size_t>(std::min(file.size(), kLongestLine)));
  if (head.empty()) throw BadFile("{}: is empty: expected a click log of text", file.name());
  file.read(0, head);
  if (!is_plain_text(first_bytes_of(file).content))
    throw BadFile("{}: expected a click log of text, whose lines are read in any order; {}",
                  file.name(), found_instead(file));
  const std::string_view text = text_of(head);
  return std::string(without_return(text.substr(0, text.find('\n'))));
}

/// Expands one number for all columns of categories, or one for each, to one for each.
std::vector<int64_t> for_each_column(std::string_view key, std::vector<int64_t> given,
                                     const ClickColumns& columns, const std::string& file) {
  if (given.size() == 1) given.resize(static_cast<size_t>(columns.categories), given.front());
  if (std::ssize(given) != columns.categories)
    throw ConfigError(fmt::format(
        "{} has {} numbers: {} has {} categories; give one number for all, or one for each", key,
        given.size(), file, columns.categories));
  return given;
}

}  // namespace

struct ClickSet::Log {
  FileBytes file;
  ClickColumns columns;
  int64_t first = 0;           ///< the sample of its first line
  int64_t lines = 0;           ///< without the header
  std::vector<int64_t> marks;  ///< where each kStride-th line starts, then where the last one ends

  Log(const std::filesystem::path& path, ClickLabels labels)
      : file(FileBytes::open(path)), columns(click_columns(first_line(file), file.name(), labels)) {
    int64_t start = mark_bytes(file), line = columns.header ? -1 : 0;
    int64_t full = 0, full_end = 0;  // lines up to the last non-empty one, and its end
    const auto end_line = [&](int64_t end) {
      if (end - start > kLongestLine)
        throw BadFile("{}: line {} is longer than {} bytes: this is no click log", file.name(),
                      number_of(line), kLongestLine);
      if (line >= 0 && line % kStride == 0) marks.push_back(start);
      ++line;
      if (!is_blank(start, end)) full = line, full_end = end;
      start = end;
    };
    file.walk(0, [&](std::span<const uint8_t> block, int64_t at) {
      const std::string_view text = text_of(block);
      for (size_t i = text.find('\n'); i != text.npos; i = text.find('\n', i + 1))
        end_line(at + static_cast<int64_t>(i) + 1);
      if (at + std::ssize(block) - start > kLongestLine) end_line(at + std::ssize(block));
    });
    if (start < file.size()) end_line(file.size());
    // Empty lines at the end, as editors leave them, do not count.
    if (full <= 0)
      throw BadFile("{}: has no line{}", file.name(),
                    columns.header ? " but the header" : " with anything in it");
    lines = full;
    marks.resize(static_cast<size_t>((lines + kStride - 1) / kStride));
    marks.push_back(full_end);
  }

  /// Reads again only a line that may be no more than a line end.
  bool is_blank(int64_t start, int64_t end) const {
    if (end - start > 2) return false;
    std::vector<uint8_t> bytes(static_cast<size_t>(end - start));
    file.read(start, bytes);
    return text_of(bytes).find_first_not_of("\r\n") == std::string_view::npos;
  }

  /// Returns the line's number in an editor.
  int64_t number_of(int64_t line) const { return line + (columns.header ? 2 : 1); }

  void read(int64_t line, const ClickTables& tables, const ClickFields& out) const {
    const auto mark = static_cast<size_t>(line / kStride);
    std::vector<uint8_t> block(static_cast<size_t>(marks[mark + 1] - marks[mark]));
    file.read(marks[mark], block);
    std::string_view text = text_of(block);
    for (int64_t i = 0; i < line % kStride; ++i) {
      const size_t end = text.find('\n');
      if (end == text.npos)
        throw BadFile("{}: line {} is gone: the file was changed after it was opened", file.name(),
                      number_of(line));
      text.remove_prefix(end + 1);
    }
    read_click_line(columns, without_return(text.substr(0, text.find('\n'))), tables,
                    fmt::format("{}:{}", file.name(), number_of(line)), out);
  }
};

ClickSet::ClickSet(const ClickSetSpec& spec) {
  for (const std::filesystem::path& path : spec.files) {
    auto log = std::make_shared<Log>(path, spec.labels);
    log->first = size_;
    size_ += log->lines;
    if (!logs_.empty() && (log->columns.numbers != logs_.front()->columns.numbers ||
                           log->columns.categories != logs_.front()->columns.categories))
      throw BadFile(
          "{} has {} numbers and {} categories, {} {} and {}: the files do not belong together",
          log->file.name(), log->columns.numbers, log->columns.categories,
          logs_.front()->file.name(), logs_.front()->columns.numbers,
          logs_.front()->columns.categories);
    logs_.push_back(std::move(log));
  }
  CHECK(!logs_.empty(), "a click log needs a file");
  const ClickColumns& columns = logs_.front()->columns;
  const std::string& first = logs_.front()->file.name();
  if (spec.vocabulary.empty()) {
    tables_.rows = for_each_column("data.table_rows", spec.rows, columns, first);
  } else {
    vocabulary_ = std::make_shared<const ClickVocabulary>(ClickVocabulary::read(spec.vocabulary));
    tables_.vocabulary = vocabulary_.get();
    if (static_cast<int64_t>(vocabulary_->columns()) != columns.categories)
      throw ConfigError(fmt::format(
          "{} has {} columns of categories, {} has {}: make it anew with `tutti data vocabulary`",
          spec.vocabulary.string(), vocabulary_->columns(), first, columns.categories));
    for (size_t c = 0; c < vocabulary_->columns(); ++c)
      tables_.rows.push_back(std::max<int64_t>(vocabulary_->rows(c), 2));
  }
  tables_.bags = for_each_column("data.bag_length", spec.bags, columns, first);
  tables_.weighted = spec.weighted;
  std::vector<int64_t> rows;  // rows for each place
  for (size_t c = 0; c < tables_.bags.size(); ++c)
    rows.insert(rows.end(), static_cast<size_t>(tables_.bags[c]), tables_.rows[c]);
  const Shape places{std::ssize(rows)};
  fields_ = {{.name = "dense", .element = ElementType::i32, .shape = {columns.numbers}},
             {.name = "label", .element = ElementType::u8},
             {.name = "categories",
              .element = ElementType::i32,
              .shape = places,
              .rows = rows,
              .bags = tables_.bags}};
  if (spec.weighted)
    fields_.push_back({.name = "weights", .element = ElementType::f32, .shape = places});
}

std::vector<SamplesOfFile> ClickSet::files() const {
  std::vector<SamplesOfFile> all;
  for (const auto& log : logs_) all.push_back({log->file.name(), log->lines});
  return all;
}

SampleOrigins ClickSet::origins() const {
  SampleOrigins all = Dataset::origins();
  all.row.resize(static_cast<size_t>(size_));
  for (int64_t i = 0; i < size_; ++i) all.row[static_cast<size_t>(i)] = place(i).second;
  return all;
}

const ClickSet::Log& ClickSet::log_of(int64_t index) const {
  const auto after =
      std::ranges::upper_bound(logs_, index, {}, [](const auto& log) { return log->first; });
  return **std::prev(after);
}

std::pair<std::string, int64_t> ClickSet::place(int64_t index) const {
  const Log& log = log_of(index);
  return {log.file.name(), log.number_of(index - log.first)};
}

void ClickSet::read(int64_t index, Sample& sample) const {
  const Log& log = log_of(index);
  const auto numbers = [&](size_t f) {
    return std::span(static_cast<int32_t*>(sample.own(f)),
                     static_cast<size_t>(fields_[f].elements()));
  };
  const auto weights = tables_.weighted ? std::span(static_cast<float*>(sample.own(3)),
                                                    static_cast<size_t>(fields_[3].elements()))
                                        : std::span<float>();
  log.read(index - log.first, tables_,
           {.numbers = numbers(0),
            .categories = numbers(2),
            .weights = weights,
            .label = static_cast<uint8_t*>(sample.own(1))});
}

}  // namespace tutti::data
