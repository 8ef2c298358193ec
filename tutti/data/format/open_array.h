#pragma once
// Opens a file of any format that has arrays.

#include <filesystem>

#include "tutti/data/format/array/array_file.h"

namespace tutti::data {

/// Opens a file and tells its format by its first bytes, or a description of raw data by the ending
/// .toml. A folder counts as a file whose arrays are its .npy files: x.npy is the array "x".
/// BadFile naming the file, what was expected, what was found and the remedy.
ArrayFile open_array_file(const std::filesystem::path& path, const ArrayFileOptions& options = {});

}  // namespace tutti::data
