#pragma once
// Describes the contents of a data file or folder for people: `tutti data inspect`.

#include <filesystem>
#include <string>

namespace tutti::cli {

/// Returns fields, types, shapes and ranges and, where the place is a data set that training knows,
/// a configuration to start from. Only the first 64 Mi elements of larger arrays are read. Throws
/// IoError naming the file. `json`: the same as a JSON object, lines and configuration.
std::string inspect_data(const std::filesystem::path& path, bool json = false);

}  // namespace tutti::cli
