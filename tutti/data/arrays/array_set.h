#pragma once
// Data sets of array and TFRecord files, as a configuration describes them.

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "tutti/data/arrays/field_line.h"
#include "tutti/data/dataset.h"

namespace tutti::data {

struct ArraySetSpec {
  std::vector<std::filesystem::path> files;   ///< not empty; all of the first one's kind
  std::vector<FieldLine> fields;              ///< not empty
  std::string key;                            ///< what names the files, for messages
  std::vector<FieldStatistics> statistics{};  ///< of each field; empty: not known
  /// Files that say where samples lie, for a set that is to be as another (validation as training);
  /// empty, or not to be read: its own.
  std::vector<std::filesystem::path> settled_by{};
  /// All fields of those files, where `fields` are some of them; empty: these are all.
  std::vector<FieldLine> settled_with{};
};

/// A data set that knows which file each sample lies in.
class FileSamples : public Dataset {
 public:
  struct Place {
    size_t file;     ///< of ArraySetSpec::files
    int64_t sample;  ///< of that file, from 0
    bool alone;      ///< each file is one sample
  };
  virtual Place place(int64_t index) const = 0;
};

/// Reads headers alone: of all files where samples are counted, otherwise of a few. Types and
/// shapes are those of the first file; the others must have the same. A file is checked when it is
/// opened, and the values of a sample when it is read. A few files stay open, those used last, and
/// parts of them in memory, at most as much as one file holds or 256 MiB. Logs how samples lie in
/// the files. BadFile, ConfigError.
std::unique_ptr<FileSamples> open_array_set(const ArraySetSpec& spec);

}  // namespace tutti::data
