#pragma once
// Implements `tutti data verify`: reads every file of a data set completely and reports on each.

#include <filesystem>
#include <string>
#include <vector>

#include "tutti/data/dataset.h"

namespace tutti::data {

struct FileReport {
  std::filesystem::path file;
  int64_t bytes = 0;
  std::string xxhash64{};         ///< 16 hexadecimal digits
  std::string sha256{};           ///< only if `expected_sha256` is known
  std::string expected_sha256{};  ///< from a list in the directory: *.sha256 or SHA256SUMS, lines
                                  ///< "digest  name"
  int64_t records = 0;            ///< images or labels
  std::vector<int64_t> class_counts{};  ///< labels of each class; empty for a file without labels
  bool counts_as_published = false;     ///< false also where no counts are known
  std::string problem{};  ///< empty: the file is sound. Otherwise what was expected and found
};

struct VerifyReport {
  std::vector<FileReport> files;
  bool sound() const;
  std::string to_text() const;  ///< one line a file, for people
};

/// Reports on the files of both splits in `dir` (cifar10, lattices: or on the one file that `dir`
/// names). Images and labels must belong together, and test images must match the training images.
/// A missing file is a problem; for lattices one split suffices. If there are as many labels as in
/// the published set, the counts of classes must match too, unless `classes` says that this is
/// another set. `classes` is as data.classes, 0: the data set's own. Bad files do not throw.
/// ConfigError for an unknown name.
VerifyReport verify_dataset(const std::string& name, const std::filesystem::path& dir,
                            int64_t classes = 0);

}  // namespace tutti::data
