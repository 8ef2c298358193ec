#pragma once
// Opens the data sets of the catalog that have one file per sample, CosmoFlow's TFRecords and
// DeepCAM's HDF5, or many samples per file, atom microscopy's HDF5.

#include <filesystem>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "tutti/data/dataset.h"

namespace tutti::data {

/// Returns the regular files of a folder whose names end in one of `endings`, by name. BadFile if
/// the folder is missing or holds none.
std::vector<std::filesystem::path> sample_files(const std::filesystem::path& folder,
                                                const std::vector<std::string>& endings);

/// Says whether the set is one of these, in FOLDER/train, FOLDER/validation and perhaps
/// FOLDER/test; `part` is one of these three.
bool is_sample_set(std::string_view name);
std::vector<std::filesystem::path> sample_set_files(std::string_view name,
                                                    const std::filesystem::path& folder,
                                                    std::string_view part);
std::unique_ptr<Dataset> open_sample_set(std::string_view name, const std::filesystem::path& folder,
                                         std::string_view part);

}  // namespace tutti::data
