#pragma once
// Paths in a configuration. Paths that are read start at the folder of the file that sets the key,
// files of data at data.dir, and paths that are written at the working folder (PathKind). Flags and
// variables, which a shell has expanded, start at the working folder and are taken as they are,
// except for a leading ~.

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "tutti/cli/config/config.h"

namespace tutti::cli {

/// Where a value was written.
struct PathSource {
  bool file = false;     ///< in a file: $NAME, ${NAME} and $$ are replaced
  std::string folder{};  ///< folder of that file, absolute
};

/// Returns the source for paths in `file`. A file without a folder of its own, such as a pipe, has
/// paths that start at the working folder.
PathSource paths_of_file(const std::filesystem::path& file);

/// Returns the value of a key that is a path, as set() wants it. Appends to `relative` the paths in
/// it that start at a file's folder. Throws ConfigError naming a variable that is not set.
config::ConfigValue placed_value(const config::ConfigKey& row, const config::ConfigValue& value,
                                 const PathSource& source,
                                 std::vector<PathsOfKey::Placed>& relative);

/// Makes files of data start, where data.dir is empty, at the folder of the file that names them.
void place_data_files(ResolvedConfig& resolved);

/// Throws ConfigError where a path of a file does not exist but lies at the working folder, where
/// earlier versions looked.
void check_old_places(const ResolvedConfig& resolved);

/// Returns whether nothing lies at `path`; false if the path cannot be followed.
bool is_absent(const std::filesystem::path& path);

/// Throws ConfigError naming key and folder where nothing lies at `path`, and IoError where it
/// cannot be followed.
void require_path(std::string_view key, const std::string& path);

/// Returns `path` as it is written in a configuration file: $ becomes $$.
std::string path_in_file(std::string_view path);
/// Returns the same in quotes.
std::string toml_of_path(const std::filesystem::path& path);

}  // namespace tutti::cli
