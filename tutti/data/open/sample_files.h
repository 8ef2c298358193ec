#pragma once
// The data sets of the catalog that have one file a sample, CosmoFlow's TFRecords and DeepCAM's
// HDF5, or files of many, atom microscopy's HDF5.

#include <filesystem>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "tutti/data/dataset.h"

namespace tutti::data {

/// The regular files of a folder whose names end in one of `endings`, by name. BadFile if the
/// folder is not there or holds none.
std::vector<std::filesystem::path> sample_files(const std::filesystem::path& folder,
                                                const std::vector<std::string>& endings);

/// The data sets of the catalog that lie so: FOLDER/train, FOLDER/validation and perhaps
/// FOLDER/test. `part` is one of these.
bool is_sample_set(std::string_view name);
std::vector<std::filesystem::path> sample_set_files(std::string_view name,
                                                    const std::filesystem::path& folder,
                                                    std::string_view part);
std::unique_ptr<Dataset> open_sample_set(std::string_view name, const std::filesystem::path& folder,
                                         std::string_view part);

}  // namespace tutti::data
