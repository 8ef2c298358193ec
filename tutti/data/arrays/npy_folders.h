#pragma once
// Treats x.npy and y.npy in one folder as arrays of one file.

#include <filesystem>
#include <span>
#include <vector>

#include "tutti/data/arrays/field_line.h"

namespace tutti::data {

/// Returns the folders of the files, in their order, if all files are .npy and every line reads
/// arrays named like files of each folder: such a folder counts as one file (open_array_file).
/// Otherwise returns the files unchanged.
std::vector<std::filesystem::path> npy_folders(std::vector<std::filesystem::path> files,
                                               std::span<const FieldLine> lines);
/// Says whether the .npy files look like the fields of one set rather than like samples: 2 to 16
/// files with the same first extent, which differ in kind or have no numbers in their names.
bool look_like_fields(std::span<const std::filesystem::path> files);

}  // namespace tutti::data
