#pragma once
// Paths in a configuration. What is read starts at the folder of the file that sets the key, files
// of data at data.dir, and what is written at the working folder (PathKind). Flags and variables,
// which a shell has read, start at the working folder and are taken as they are, but for a leading
// ~.

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "tutti/cli/config/config.h"

namespace tutti {

/// Where a value was written.
struct PathSource {
  bool file = false;     ///< in a file: $NAME, ${NAME} and $$ are replaced
  std::string folder{};  ///< of that file, absolute
};

/// Paths in a file without a folder of its own, as a pipe, start at the working folder.
PathSource paths_of_file(const std::filesystem::path& file);

/// The value of a key that is a path, as set() wants it. Appends to `relative` what of it started
/// at the folder of a file. ConfigError naming a variable that is not set.
ConfigValue placed_value(const ConfigKey& row, const ConfigValue& value, const PathSource& source,
                         std::vector<PathsOfKey::Placed>& relative);

/// Where data.dir is empty, files of data start at the folder of the file that names them.
void place_data_files(ResolvedConfig& resolved);

/// ConfigError where a path of a file is not there and lies at the working folder instead, where
/// earlier versions looked.
void check_old_places(const ResolvedConfig& resolved);

/// Whether nothing lies at `path`. Of a path that cannot be followed that is not known: false.
bool is_absent(const std::filesystem::path& path);

/// ConfigError naming key and folder where nothing lies at `path`; IoError where it cannot be
/// followed.
void require_path(std::string_view key, const std::string& path);

/// `path` as a configuration file says it: $ is $$.
std::string path_in_file(std::string_view path);
/// The same in quotes.
std::string toml_of_path(const std::filesystem::path& path);

}  // namespace tutti
