#pragma once
// Opens data sets of array and TFRecord files, as a configuration describes them.

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "tutti/data/arrays/field_line.h"
#include "tutti/data/dataset.h"

namespace tutti::data {

struct ArraySetSpec {
  std::vector<std::filesystem::path> files;   ///< not empty; all of the same kind as the first
  std::vector<FieldLine> fields;              ///< not empty
  std::string key;                            ///< configuration key of the files, for messages
  std::vector<FieldStatistics> statistics{};  ///< one for each field; empty: not known
  /// Files that decide where samples lie, for a set that must be read like another one (validation
  /// like training). If there are none, or they cannot be read, the set's own files decide.
  std::vector<std::filesystem::path> settled_by{};
  /// All fields of those files, if `fields` has only some of them; empty: `fields` are all.
  std::vector<FieldLine> settled_with{};
};

/// A data set that knows in which file each sample lies.
class FileSamples : public Dataset {
 public:
  struct Place {
    size_t file;     ///< index in ArraySetSpec::files
    int64_t sample;  ///< index in that file, from 0
    bool alone;      ///< each file is one sample
  };
  virtual Place place(int64_t index) const = 0;
};

/// Reads only headers: of all files if samples are counted, otherwise of a few. Types and shapes
/// come from the first file; the others must have the same. A file is checked when it is opened,
/// and the values of a sample when it is read. The files used last stay open, with parts of them in
/// memory, limited to 256 MiB or what one file holds. Logs how samples lie in the files. BadFile,
/// ConfigError.
std::unique_ptr<FileSamples> open_array_set(const ArraySetSpec& spec);

}  // namespace tutti::data
