#include "tutti/data/file/file_list.h"

#include <fmt/ranges.h>
#include <fnmatch.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <fstream>
#include <ranges>
#include <set>
#include <system_error>

#include "tutti/base/error.h"
#include "tutti/base/file_calls.h"
#include "tutti/base/log.h"
#include "tutti/base/spelling.h"
#include "tutti/data/file/file_bytes.h"
#include "tutti/data/file/first_bytes.h"
#include "tutti/data/file/folder_walk.h"

namespace tutti::data {
namespace {

namespace fs = std::filesystem;

constexpr std::array<std::string_view, 18> kEndings = {
    ".npy",       ".npz",         ".h5",           ".hdf5", ".he5",  ".nc",
    ".nc4",       ".cdf",         ".dcd",          ".xtc",  ".trr",  ".tfrecord",
    ".tfrecords", ".tfrecord.gz", ".tfrecords.gz", ".tif",  ".tiff", ".toml"};

bool is_pattern(const std::string& text) { return text.find_first_of("*?[") != std::string::npos; }

/// Finds the paths below `at` that match the parts of a pattern from `part` on.
void match(const fs::path& at, fs::path::iterator part, const fs::path::iterator& end,
           std::vector<fs::path>& found) {
  if (part == end) return found.push_back(at);
  const std::string wanted = part->string();
  const auto rest = std::next(part);
  std::error_code unknown;
  if (!is_pattern(wanted)) {
    if (const fs::path next = at / wanted;
        rest == end ? is_there(next) : fs::is_directory(next, unknown))
      match(next, rest, end, found);
    return;
  }
  if (!fs::is_directory(at.empty() ? "." : at, unknown)) return;
  for (const fs::directory_entry& entry : folder_entries(at, wanted.starts_with('.'))) {
    const fs::path name = entry.path().filename();
    if (::fnmatch(wanted.c_str(), name.c_str(), FNM_PERIOD) == 0 &&
        (rest == end || entry.is_directory(unknown)))
      match(at / name, rest, end, found);
  }
}

/// Says whether the file may describe arrays: a configuration that lies beside the data does not.
bool describes_arrays(const fs::path& file) {
  if (file.extension() != ".toml" || !is_file(file)) return true;
  std::ifstream in(file);
  for (std::string line; std::getline(in, line);) {
    line = without_mark(line);  // only the first line can have one
    if (line.find_first_not_of(" \t") == line.find("[[array]]") && line.find('[') != line.npos)
      return true;
  }
  return false;
}

/// Says whether `key` is a flag: paths on the command line start at the working folder, others at
/// data.dir.
bool is_flag(std::string_view key) { return key.starts_with("--"); }

/// Returns text such as "data.train_files or data.dir".
std::string keys_to_correct(std::string_view key) {
  return key == "data.dir" || is_flag(key) ? std::string(key)
                                           : fmt::format("{} or data.dir (--data-dir)", key);
}

/// Says what lies in the subfolders of a folder that has no file of its own, as in "; its folders
/// a, b hold .tif files"; empty where nothing does. Sets `pattern` to one that matches these files.
std::string files_below(const fs::path& folder, std::string& pattern) {
  std::vector<std::string> folders;
  std::string ending;
  std::error_code unknown;
  for (const fs::directory_entry& entry : folder_entries(folder)) try {
      if (!entry.is_directory(unknown)) continue;
      const std::vector<fs::directory_entry> own = folder_entries(entry.path());
      if (own.empty() || !is_file(own.front().path())) continue;
      if (folders.empty()) ending = own.front().path().extension().string();
      folders.push_back(entry.path().filename().string());
    } catch (const IoError&) {}  // the folder may not be searchable
  if (folders.empty()) return "";
  pattern = "*/*" + ending;
  if (folders.size() > 3) folders[3] = "...", folders.resize(4);
  return fmt::format(
      "; its folders {} hold {} files, and folders of classes are those of JPEG and PNG images",
      fmt::join(folders, ", "), ending);
}

/// Returns the remedy for a folder in which no file name is known: it names a file, what it is, and
/// a pattern that fits it, or only the file where `key` takes no patterns.
std::string way_to_name_files(const fs::path& folder, std::string_view key) {
  std::string found, file, pattern = "*.dat";
  for (const fs::directory_entry& entry : folder_entries(folder))
    if (found.empty() && is_file(entry.path())) try {
        const std::string name = entry.path().filename().string();
        found =
            fmt::format("; '{}' is {}", name, first_bytes_of(FileBytes::open(entry.path())).name);
        file = entry.path().string();
        pattern = "*" + entry.path().extension().string();
      } catch (const IoError&) {}
  if (found.empty()) found = files_below(folder, pattern);
  if (key.starts_with("data.") || is_flag(key))
    return fmt::format("{}: name the files, or a pattern such as \"{}\"", found,
                       (folder / pattern).string());
  return file.empty() ? fmt::format("{}: name a file", found)
                      : fmt::format("{}: name the file, {}", found, file);
}

/// Says which part of a path is missing: ": the folder X has no 'mesured', did you mean
/// 'measured'?"
std::string first_missing_part(const fs::path& path) {
  fs::path missing = path;
  while (missing.has_parent_path() && missing.parent_path() != missing &&
         !is_there(missing.parent_path()))
    missing = missing.parent_path();
  std::error_code failed;
  if (const fs::path target = fs::read_symlink(missing, failed); !failed)
    return fmt::format("; {} is a symbolic link to '{}', which is not there", missing.string(),
                       target.string());
  const fs::path folder = missing.parent_path();
  std::vector<std::string> names;
  for (const auto& entry : fs::directory_iterator(folder, failed))
    names.push_back(entry.path().filename().string());
  const std::string name = missing.filename().string();
  return fmt::format("; the folder {} has no '{}'{}", folder.string(), name,
                     did_you_mean(nearest_spelling(name, names)));
}

/// Warns of an incomplete copy behind an entry: `fits` says which names the entry means.
template <class Fits>
void warn_of_missing_parts(const std::vector<fs::path>& files, std::string_view key, Fits fits) {
  std::vector<fs::path> missing = missing_parts(files);
  std::erase_if(missing, [&](const fs::path& path) { return !fits(path.filename().string()); });
  if (!missing.empty())
    log::warn_once(
        "{}: {} is missing, and others of its set are there: unless a part is wanted, fetch it "
        "again",
        key,
        fmt::join(missing | std::views::transform([](const fs::path& p) { return p.string(); }),
                  ", "));
}

std::vector<fs::path> entry_files(const std::string& entry, const fs::path& folder,
                                  std::string_view key) {
  const fs::path path = (folder / entry).lexically_normal();
  std::error_code failed;
  if (fs::is_directory(path, failed)) {
    std::vector<fs::path> files;
    for (const fs::directory_entry& entry : folder_entries(path))
      if (is_sample_file_name(entry.path().filename().string()) && describes_arrays(entry.path()))
        files.push_back(entry.path());
    if (files.empty())
      throw BadFile("{}: the folder {} holds no files that end in {}{}", key, path.string(),
                    fmt::join(kEndings, " "), way_to_name_files(path, key));
    warn_of_missing_parts(files, key, [](const std::string&) { return true; });
    return files;
  }
  if (is_there(path)) return {path};
  if (!is_pattern(entry))
    throw BadFile(
        "{}: {} does not exist{}: correct {}{}", key,
        fs::absolute(path, failed).lexically_normal().string(),
        is_flag(key) ? "" : " (relative paths start at data.dir; without it, at the configuration)",
        keys_to_correct(key), first_missing_part(fs::absolute(path, failed).lexically_normal()));
  std::vector<fs::path> files;
  const fs::path pattern = fs::path(entry).lexically_normal();
  match(pattern.is_absolute() ? fs::path() : folder.lexically_normal(), pattern.begin(),
        pattern.end(), files);
  std::erase_if(files, [](const fs::path& file) {
    std::error_code unknown;
    return fs::is_directory(file, unknown);
  });
  if (files.empty())
    throw BadFile("{}: no file fits the pattern {}: correct {}", key,
                  fs::absolute(path, failed).lexically_normal().string(), keys_to_correct(key));
  warn_of_missing_parts(files, key, [&](const std::string& name) {
    return ::fnmatch(pattern.filename().c_str(), name.c_str(), FNM_PERIOD) == 0;
  });
  return files;
}

}  // namespace

bool is_sample_file_name(std::string_view name) {
  if (const auto numbered = numbered_name(name))
    if (numbered->after.empty() || numbered->after == ".gz") return true;
  return std::ranges::any_of(kEndings, [&](std::string_view end) { return name.ends_with(end); });
}

std::string NumberedName::of(int64_t other) const {
  return fmt::format("{}{:0{}}{}{}", before, other, digits, between, after);
}

std::optional<NumberedName> numbered_name(std::string_view name) {
  constexpr std::string_view kOf = "-of-", kDigits = "0123456789";
  constexpr size_t kMostDigits = 9;
  const size_t of = name.rfind(kOf);
  if (of == name.npos || of == 0) return {};
  const size_t last = name.find_last_not_of(kDigits, of - 1);
  const size_t first = last == name.npos ? 0 : last + 1;
  const size_t count = of + kOf.size(),
               end = std::min(name.find_first_not_of(kDigits, count), name.size());
  if (first == of || end == count || of - first > kMostDigits || end - count > kMostDigits)
    return {};
  NumberedName found{.before = std::string(name.substr(0, first)),
                     .between = std::string(name.substr(of, end - of)),
                     .after = std::string(name.substr(end)),
                     .digits = of - first};
  std::from_chars(name.data() + first, name.data() + of, found.number);
  std::from_chars(name.data() + count, name.data() + end, found.count);
  return found;
}

std::vector<fs::path> missing_parts(const std::vector<fs::path>& files) {
  constexpr size_t kMost = 8;
  const std::set<fs::path> given(files.begin(), files.end());
  std::set<fs::path> seen;  // one name of each set
  std::vector<fs::path> missing;
  for (const fs::path& file : files) {
    const auto name = numbered_name(file.filename().string());
    if (!name || !seen.insert(file.parent_path() / name->of(0)).second) continue;
    // Sets count from 0 (TensorFlow) or from 1 (PyTorch's parts of weights).
    const auto path_of = [&](int64_t number) { return file.parent_path() / name->of(number); };
    const auto there = [&](int64_t number) {
      return given.contains(path_of(number)) || is_there(path_of(number));
    };
    const int64_t from = there(0) || !there(name->count) ? 0 : 1;
    for (int64_t i = from; i < name->count + from && missing.size() < kMost; ++i)
      if (!there(i)) missing.push_back(path_of(i));
  }
  return missing;
}

std::vector<fs::path> listed_files(const std::vector<std::string>& entries, const fs::path& folder,
                                   std::string_view key) {
  std::vector<fs::path> all;
  std::set<fs::path> seen;
  for (const std::string& entry : entries)
    for (fs::path& file : entry_files(entry, folder, key)) {
      if (!seen.insert(file.lexically_normal()).second)
        throw ConfigError(
            fmt::format("{} leads to {} twice: name every file once", key, file.string()));
      all.push_back(std::move(file));
    }
  if (all.empty()) throw ConfigError(fmt::format("{} names no file", key));
  return all;
}

}  // namespace tutti::data
