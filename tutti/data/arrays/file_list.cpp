#include "tutti/data/arrays/file_list.h"

#include <fmt/ranges.h>
#include <fnmatch.h>

#include <algorithm>
#include <array>
#include <fstream>
#include <set>
#include <system_error>

#include "tutti/base/error.h"
#include "tutti/data/format/file_bytes.h"
#include "tutti/data/format/first_bytes.h"

namespace tutti::data {
namespace {

namespace fs = std::filesystem;

constexpr std::array<std::string_view, 18> kEndings = {
    ".npy",       ".npz",         ".h5",           ".hdf5", ".he5",  ".nc",
    ".nc4",       ".cdf",         ".dcd",          ".xtc",  ".trr",  ".tfrecord",
    ".tfrecords", ".tfrecord.gz", ".tfrecords.gz", ".tif",  ".tiff", ".toml"};

/// The names in a folder, sorted; hidden ones only where `hidden`.
std::vector<std::string> names_in(const fs::path& folder, bool hidden) {
  std::vector<std::string> names;
  std::error_code failed;
  fs::directory_iterator entry(folder.empty() ? "." : folder, failed);
  for (const fs::directory_iterator end; !failed && entry != end; entry.increment(failed))
    if (std::string name = entry->path().filename().string(); hidden || !name.starts_with('.'))
      names.push_back(std::move(name));
  if (failed)
    throw IoError(fmt::format("{}: cannot look into the folder: {}", folder.string(),
                              file_error(failed.value())));
  std::ranges::sort(names);
  return names;
}

bool is_pattern(const std::string& text) { return text.find_first_of("*?[") != std::string::npos; }

/// The paths that fit the parts of a pattern from `part` on.
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
  for (const std::string& name : names_in(at, wanted.starts_with('.')))
    if (::fnmatch(wanted.c_str(), name.c_str(), FNM_PERIOD) == 0 &&
        (rest == end || fs::is_directory(at / name, unknown)))
      match(at / name, rest, end, found);
}

/// A configuration that lies beside the data is none of them.
bool describes_arrays(const fs::path& file) {
  if (file.extension() != ".toml") return true;
  std::ifstream in(file);
  for (std::string line; std::getline(in, line);)
    if (line.find_first_not_of(" \t") == line.find("[[array]]") && line.find('[') != line.npos)
      return true;
  return false;
}

/// Paths on the command line start at the working folder, those of keys at data.dir.
bool is_flag(std::string_view key) { return key.starts_with("--"); }

/// "data.train_files or data.dir".
std::string keys_to_correct(std::string_view key) {
  return key == "data.dir" || is_flag(key) ? std::string(key) : fmt::format("{} or data.dir", key);
}

/// Names a file of a folder in which none is known by its name, and what it is.
std::string example_of(const fs::path& folder) {
  for (const std::string& name : names_in(folder, false))
    if (is_file(folder / name)) try {
        const FirstBytes found = first_bytes_of(FileBytes::open(folder / name));
        return fmt::format("; '{}' is {}", name, found.name);
      } catch (const IoError&) {}
  return "";
}

std::vector<fs::path> files_of(const fs::path& path, std::string_view key) {
  std::error_code failed;
  if (fs::is_directory(path, failed)) {
    std::vector<fs::path> files;
    for (const std::string& name : names_in(path, false))
      if (is_sample_file_name(name) && describes_arrays(path / name)) files.push_back(path / name);
    if (files.empty())
      throw BadFile(fmt::format(
          "{}: the folder {} holds no files that end in {}{}: name the files, or "
          "a pattern such as \"{}/*.dat\"",
          key, path.string(), fmt::join(kEndings, " "), example_of(path), path.string()));
    return files;
  }
  if (is_there(path)) return {path};
  if (!is_pattern(path.string()))
    throw BadFile(fmt::format("{}: {} does not exist{}: correct {}", key,
                              fs::absolute(path, failed).lexically_normal().string(),
                              is_flag(key) ? "" : " (relative paths start at data.dir)",
                              keys_to_correct(key)));
  std::vector<fs::path> files;
  match({}, path.begin(), path.end(), files);
  std::erase_if(files, [](const fs::path& file) {
    std::error_code unknown;
    return fs::is_directory(file, unknown);
  });
  if (files.empty())
    throw BadFile(fmt::format("{}: no file fits the pattern {}: correct {}", key,
                              fs::absolute(path, failed).lexically_normal().string(),
                              keys_to_correct(key)));
  return files;
}

}  // namespace

bool is_sample_file_name(std::string_view name) {
  return std::ranges::any_of(kEndings, [&](std::string_view end) { return name.ends_with(end); });
}

std::vector<fs::path> listed_files(const std::vector<std::string>& entries, const fs::path& folder,
                                   std::string_view key) {
  std::vector<fs::path> all;
  std::set<fs::path> seen;
  for (const std::string& entry : entries)
    for (fs::path& file : files_of((folder / entry).lexically_normal(), key)) {
      if (!seen.insert(file.lexically_normal()).second)
        throw ConfigError(
            fmt::format("{} leads to {} twice: name every file once", key, file.string()));
      all.push_back(std::move(file));
    }
  if (all.empty()) throw ConfigError(fmt::format("{} names no file", key));
  return all;
}

}  // namespace tutti::data
