#pragma once
// Data sets of one file a sample: TFRecords of one tf.Example each (CosmoFlow), and array files
// (DeepCAM's HDF5, NumPy, NetCDF-4).

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

/// A field of a tf.Example: numbers of a type, whose bytes (bytes_list) or values (float_list,
/// int64_list) the feature of that name holds.
struct ExampleField {
  std::string name;
  ElementType element = ElementType::f32;
  /// Rows last; one extent may be 0: all such extents are the same number, which follows from the
  /// first file (a cube of any side).
  std::vector<int64_t> shape;
};

/// Reads the first file for the extents that are not given. Every file is opened, checked and read
/// when its sample is: BadFile naming file, record, what was expected and what was found.
std::unique_ptr<Dataset> open_example_files(std::vector<std::filesystem::path> files,
                                            const std::vector<ExampleField>& fields);

/// A field of an array file: the whole array of that name (ArrayInfo::name).
struct ArrayField {
  std::string name, array;
  std::vector<std::string> class_names{};  ///< of class numbers, which are checked on reading
  FieldStatistics statistics{};
};

/// Types and shapes are those of the first file; the others must have the same.
std::unique_ptr<Dataset> open_array_files(std::vector<std::filesystem::path> files,
                                          const std::vector<ArrayField>& fields);

/// The data sets of the catalog that lie so: FOLDER/train, FOLDER/validation and perhaps
/// FOLDER/test. `part` is one of these.
bool is_sample_set(std::string_view name);
std::vector<std::filesystem::path> sample_set_files(std::string_view name,
                                                    const std::filesystem::path& folder,
                                                    std::string_view part);
std::unique_ptr<Dataset> open_sample_set(std::string_view name, const std::filesystem::path& folder,
                                         std::string_view part);

}  // namespace tutti::data
