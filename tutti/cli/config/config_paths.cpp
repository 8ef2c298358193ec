#include "tutti/cli/config/config_paths.h"

#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <cstdlib>
#include <system_error>

#include "tutti/base/error.h"
#include "tutti/base/file_calls.h"
#include "tutti/data/transform/steps.h"

namespace tutti::cli {
namespace {

namespace fs = std::filesystem;

std::string value_of_variable(std::string_view name, const std::string& path) {
  const char* value = std::getenv(std::string(name).c_str());
  if (!value)
    throw ConfigError(
        fmt::format("is \"{}\", but the environment variable {} is not set; $$ stands for the sign",
                    path, name));
  return value;
}

/// Replaces a leading ~ and, in a file, $NAME and ${NAME} as a shell does, and $$ by $.
std::string expanded(const std::string& path, bool in_file) {
  const auto name_letter = [](char c) {
    return std::isalnum(static_cast<unsigned char>(c)) || c == '_';
  };
  std::string out;
  size_t at = 0;
  if (path == "~" || path.starts_with("~/")) out = value_of_variable("HOME", path), at = 1;
  if (!in_file) return out + path.substr(at);
  while (at < path.size()) {
    if (path[at] != '$') {
      out += path[at++];
      continue;
    }
    if (path.substr(at, 2) == "$$") {
      out += '$', at += 2;
      continue;
    }
    const bool braces = at + 1 < path.size() && path[at + 1] == '{';
    const size_t first = at + (braces ? 2 : 1);
    size_t end = first;
    while (end < path.size() && name_letter(path[end])) ++end;
    if (end == first || (braces && (end == path.size() || path[end] != '}'))) {
      out += path[at++];  // a dollar sign that no name follows
      continue;
    }
    out += value_of_variable(path.substr(first, end - first), path);
    at = end + (braces ? 1 : 0);
  }
  return out;
}

/// Returns `path` from `folder` on, absolute. "." is dropped; ".." stays, since it may lead out of
/// the folder that a link leads into.
std::string path_from(const std::string& folder, const std::string& path) {
  std::error_code failed;
  const fs::path given = fs::path(folder) / path,
                 whole = fs::absolute(given.empty() ? "." : given, failed);
  if (failed) return path;
  fs::path out;
  for (const fs::path& part : whole)
    if (part != ".") out /= part;
  return out.string();
}

/// Returns 0, or the error with which `path` cannot be examined.
int error_of(const fs::path& path) {
  struct stat status {};
  return ::stat(path.c_str(), &status) == 0 ? 0 : errno;
}

}  // namespace

PathSource paths_of_file(const fs::path& file) {
  std::error_code unknown;
  const bool own = fs::is_regular_file(file, unknown);
  return {.file = true, .folder = path_from(own ? file.parent_path().string() : "", ".")};
}

config::ConfigValue placed_value(const config::ConfigKey& row, const config::ConfigValue& value,
                                 const PathSource& source,
                                 std::vector<PathsOfKey::Placed>& relative) {
  const auto place = [&](const std::string& path) {
    const std::string there = path_from(source.folder, path);
    if (source.file && !path.starts_with('/')) relative.push_back({path, there});
    return there;
  };
  if (const auto* texts = std::get_if<std::vector<std::string>>(&value)) {
    if (row.path != config::PathKind::read) return value;
    std::vector<std::string> placed;
    for (const std::string& text : *texts) placed.push_back(data::with_topology(text, place));
    return placed;
  }
  const auto* text = std::get_if<std::string>(&value);
  if (!text) return value;
  const std::string path = expanded(*text, source.file);
  if (row.path != config::PathKind::read || path.empty() || path == row.path_word) return path;
  return place(path);
}

void place_data_files(ResolvedConfig& resolved) {
  if (!resolved.config.data.dir.empty()) return;
  const auto train = resolved.paths.find("data.train_files");
  if (train == resolved.paths.end() || resolved.config.data.train_files.empty()) return;
  const std::string folder = path_from(train->second.folder, ".");
  for (const config::ConfigKey& row : config::config_keys()) {
    const auto own = resolved.paths.find(row.name);
    if (row.path != config::PathKind::data || own == resolved.paths.end()) continue;
    std::vector<std::string> placed;
    const std::string from = path_from(own->second.folder, ".");
    const auto files = std::get<std::vector<std::string>>(row.get(resolved.config));
    for (const std::string& file : files) {
      placed.push_back(from == folder ? file : path_from(from, file));
      if (!own->second.folder.empty() && !file.starts_with('/') &&
          file.find_first_of("*?[") == std::string::npos)
        own->second.relative.push_back({file, path_from(from, file)});
    }
    row.set(resolved.config, placed);
  }
  resolved.config.data.dir = folder;
  resolved.origins["data.dir"] = "the folder of " + resolved.origins.at("data.train_files");
}

void check_old_places(const ResolvedConfig& resolved) {
  for (const auto& [key, paths] : resolved.paths)
    for (const PathsOfKey::Placed& path : paths.relative) {
      const std::string old = path_from("", path.written);
      if (old == path.place || !is_absent(path.place) || !is_there(old)) continue;
      throw ConfigError(fmt::format(
          "{}: {}: '{}' starts at the folder of its file, and nothing lies at {}; at the working "
          "folder, where earlier versions looked, there is {}: write that path in the file, or "
          "move what it names",
          resolved.origins.at(key), key, path.written, path.place, old));
    }
}

bool is_absent(const fs::path& path) {
  const int error = error_of(path);
  return error == ENOENT || error == ENOTDIR;
}

void require_path(std::string_view key, const std::string& path) {
  if (const int error = error_of(path); error == 0)
    return;
  else if (!is_absent(path))
    throw IoError(fmt::format("{} = \"{}\": {}", key, path, file_error(error)));
  const fs::path folder = fs::path(path_from("", path)).parent_path();
  throw ConfigError(
      fmt::format("{} = \"{}\": there is no such file or folder: {}; a relative path in a "
                  "configuration starts at the folder of its file, one in a flag or variable at "
                  "the working folder: correct {}",
                  key, path,
                  is_there(folder) ? fmt::format("the folder {} has none", folder.string())
                                   : fmt::format("there is no folder {}", folder.string()),
                  key));
}

std::string path_in_file(std::string_view path) {
  std::string text;
  for (const char c : path) text.append(c == '$' ? 2 : 1, c);
  return text;
}

std::string toml_of_path(const fs::path& path) {
  return config::to_toml(path_in_file(path.string()));
}

}  // namespace tutti::cli
