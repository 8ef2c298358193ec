#include "tutti/cli/data/inspect_files.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <fstream>
#include <limits>
#include <string>
#include <unordered_set>
#include <vector>

#include "tutti/base/error.h"
#include "tutti/cli/config/config_paths.h"
#include "tutti/config/config.h"
#include "tutti/data/clicks/click_line.h"
#include "tutti/data/file/file_bytes.h"
#include "tutti/data/file/first_bytes.h"

namespace tutti::cli {
namespace {

namespace fs = std::filesystem;

constexpr int64_t kLinesLookedAt = 100'000;

/// Reads a line, without the line end of files from Windows.
bool next_line(std::ifstream& file, std::string& line) {
  if (!std::getline(file, line)) return false;
  if (line.ends_with('\r')) line.pop_back();
  return true;
}

/// Statistics of the lines of a log.
struct SeenLines {
  int64_t lines = 0, clicked = 0;
  bool all = true;  ///< the whole file was read
  std::vector<int32_t> lowest, highest;
  std::vector<std::unordered_set<std::string>> words;  ///< by column of categories
};

SeenLines look_through(const fs::path& path, const data::ClickColumns& columns) {
  const auto numbers = static_cast<size_t>(columns.numbers),
             categories = static_cast<size_t>(columns.categories);
  SeenLines seen;
  seen.lowest.assign(numbers, std::numeric_limits<int32_t>::max());
  seen.highest.assign(numbers, std::numeric_limits<int32_t>::min());
  seen.words.resize(categories);
  const std::vector<int64_t> one{1};
  const data::ClickTables tables{.rows = std::vector<int64_t>(categories, 2),
                                 .bags = std::vector<int64_t>(categories, 1)};
  std::vector<int32_t> dense(numbers), rows(categories);
  std::ifstream file(path);
  std::string line;
  if (columns.header) next_line(file, line);
  int64_t at = columns.header ? 1 : 0;
  while (next_line(file, line)) {
    if (++at == 1) line = data::without_mark(line);
    if (line.empty()) continue;
    if (seen.lines == kLinesLookedAt) {
      seen.all = false;
      break;
    }
    uint8_t label = 0;
    data::read_click_line(columns, line, tables, fmt::format("{}:{}", path.string(), at),
                          {.numbers = dense, .categories = rows, .weights = {}, .label = &label});
    ++seen.lines;
    seen.clicked += label;
    for (size_t i = 0; i < numbers; ++i) {
      seen.lowest[i] = std::min(seen.lowest[i], dense[i]);
      seen.highest[i] = std::max(seen.highest[i], dense[i]);
    }
    data::for_each_category(columns, line, one, [&](size_t column, std::string_view text) {
      seen.words[column].emplace(text);
    });
  }
  if (seen.lines == 0)
    throw data::BadFile(fmt::format(
        "{}: expected lines of a click log, found none: give another file", path.string()));
  return seen;
}

/// True if the first line is of such a log.
bool begins_as_log(const fs::path& path) {
  std::ifstream file(path);
  std::string first(1 << 16, '\0');
  file.read(first.data(), std::ssize(first));
  first.resize(static_cast<size_t>(file.gcount()));
  const size_t end = first.find('\n');
  if (end == first.npos || first.find('\0') < end) return false;
  first.resize(end);
  if (first.ends_with('\r')) first.pop_back();
  try {
    data::click_columns(first, path.string());
    return true;
  } catch (const IoError&) {
    return false;
  }
}

/// The file itself or, in a folder, the first log in its "train".
fs::path first_log(const fs::path& path) {
  std::error_code unknown;
  if (fs::is_regular_file(path, unknown)) return path;
  std::vector<fs::path> files;
  for (const auto& entry : fs::directory_iterator(path / "train", unknown))
    if (entry.is_regular_file(unknown)) files.push_back(entry.path());
  return files.empty() ? fs::path() : *std::ranges::min_element(files);
}

}  // namespace

bool is_click_log(const fs::path& path) {
  const fs::path log = first_log(path);
  return !log.empty() && begins_as_log(log);
}

InspectedData inspect_clicks(const fs::path& given) {
  const fs::path path = first_log(given);
  const bool folder = path != given;
  std::string first;
  std::ifstream file(path);
  next_line(file, first);
  const data::ClickColumns columns = data::click_columns(first, path.string());
  const SeenLines seen = look_through(path, columns);

  InspectedData report;
  report.listing =
      fmt::format("{}: a click log, {}{} lines, of which {:.1f} % were clicked\n", path.string(),
                  seen.all ? "" : "looked at the first ", seen.lines,
                  100.0 * static_cast<double>(seen.clicked) / static_cast<double>(seen.lines));
  for (size_t i = 0; i < seen.lowest.size(); ++i)
    report.listing +=
        fmt::format("  number {:<3} {} to {}\n", i + 1, seen.lowest[i], seen.highest[i]);
  // Twice as many rows as categories: some 40 % of hashed ones then share their row.
  std::vector<int64_t> rows;
  for (size_t c = 0; c < seen.words.size(); ++c) {
    report.listing += fmt::format("  category {:<3} {} different\n", c + 1, seen.words[c].size());
    rows.push_back(std::max<int64_t>(2, 2 * std::ssize(seen.words[c])));
  }
  const fs::path whole = fs::absolute(folder ? given : path).lexically_normal();
  std::error_code unknown;
  const std::string from =
      folder ? "" : fmt::format("train_files = [{}]\n", config::to_toml(whole.filename().string()));
  const std::string judged = folder && fs::exists(given / "validation", unknown)
                                 ? ""
                                 : "validation = 0.1  # the last tenth of the lines\n";
  report.configuration = fmt::format(
      "[data]\ndataset = \"clicks\"\ndir = {}\n{}{}table_rows = [{}]  # twice the categories {}; "
      "data.vocabulary gives "
      "each a row of its own\n\n[model]\nname = \"dlrm\"\n\n[batch]\nglobal = {}\n\n[optimizer]\n"
      "name = \"sgd\"\nlr = 0.1\nmomentum = 0\ntables = \"adagrad\"\n\n[run]\nepochs = 1\nmetric = "
      "\"auc\"\n",
      toml_of_path(folder ? whole : whole.parent_path()), from, judged, fmt::join(rows, ", "),
      seen.all ? "seen" : "of these lines, of all there are more",
      std::clamp<int64_t>(seen.lines / 10, 1, 128));
  return report;
}

}  // namespace tutti::cli
