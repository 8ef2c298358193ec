#pragma once
// What a file or folder of data holds, for people: `tutti data inspect`.

#include <filesystem>
#include <string>

namespace tutti {

/// Fields, types, shapes and ranges, and where the place is a data set that training knows, a
/// configuration to start from. Arrays of more than 64 Mi elements are read up to there. Throws
/// IoError naming the file. `json`: the same as a JSON object, lines and configuration.
std::string inspect_data(const std::filesystem::path& path, bool json = false);

}  // namespace tutti
