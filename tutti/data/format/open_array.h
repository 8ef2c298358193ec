#pragma once
// Opens a file of any format that has arrays.

#include <filesystem>

#include "tutti/data/format/array/array_file.h"

namespace tutti::data {

/// Opens a file and tells its format by its first bytes; a description of raw data by its ending
/// .toml. A folder is a file whose arrays are the .npy files in it: x.npy is the array "x". BadFile
/// naming the file, what was expected, what was found and what to do.
ArrayFile open_array_file(const std::filesystem::path& path, const ArrayFileOptions& options = {});

}  // namespace tutti::data
