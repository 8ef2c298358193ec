#pragma once
// x.npy and y.npy beside each other: arrays of one folder.

#include <filesystem>
#include <span>
#include <vector>

#include "tutti/data/arrays/field_line.h"

namespace tutti::data {

/// The folders of the files, in their order, where all files are .npy and every line reads arrays
/// that are called as files of each folder: then a folder is what a file is elsewhere
/// (open_array_file). Otherwise the files as they are.
std::vector<std::filesystem::path> npy_folders(std::vector<std::filesystem::path> files,
                                               std::span<const FieldLine> lines);
/// Whether the .npy files look like the fields of one set rather than like samples: 2 to 16, with
/// one first extent, of different kinds or without numbers in their names.
bool look_like_fields(std::span<const std::filesystem::path> files);

}  // namespace tutti::data
