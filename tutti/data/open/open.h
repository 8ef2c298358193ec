#pragma once
// open_dataset opens a Dataset by name and place.

#include <filesystem>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "tutti/data/clicks/click_set.h"
#include "tutti/data/dataset.h"
#include "tutti/data/format/sets/known_dataset.h"
#include "tutti/data/neurons/neuron_set.h"
#include "tutti/data/text/text_set.h"

namespace tutti::data {

/// Describes the data set "arrays": the user's own files, as in data.fields and related keys.
struct ArraysSpec {
  /// Entries of each split: files, folders, patterns, relative to the directory. A split without
  /// entries does not exist.
  std::vector<std::string> train{}, validation{}, test{};
  std::vector<std::string> fields{};  ///< lines of data.fields
  std::string statistics{};           ///< a file, relative to the working folder; empty: none
};

struct DatasetSpec {
  std::string name;             ///< a name of the catalog
  std::filesystem::path dir{};  ///< its directory, or one file for any split of cifar10 and
                                ///< lattices; lattices: empty = generate
  std::string split = "train";  ///< train, validation or test
  ClassLimit classes{};         ///< limit of the labels

  // For generated lattices only:
  uint64_t seed = 1;
  int64_t count = 0;       ///< images; 0 = 10,000 for train and 2,000 for test
  int threads = 1;         ///< threads that generate; the images do not depend on them
  bool when_read = false;  ///< make each image when it is read, instead of all at once

  ArraysSpec arrays{};
  NeuronSetSpec neurons{};  ///< files and fields come from `arrays`
  ClickSetSpec clicks{};    ///< files come from `arrays`
  TextSetSpec text{};       ///< for "text" and "tokens", with files from `arrays`; for
                            ///< "token-pairs" only the window
};

/// Says whether the data set has the spec's part. cosmoflow and deepcam have a validation set, and
/// a test set if there is a folder of that name; clicks need named files or a folder; text and
/// tokens need named files, or files with fitting names; arrays need named files; the others have a
/// test set. ConfigError for an unknown name or part.
bool has_split(const DatasetSpec& spec);

/// Opens and checks a data set. ConfigError for an unknown name, a part that it lacks, a
/// specification without a directory, or a label beyond the classes; IoError for files that are
/// missing, truncated or corrupted, naming the file, what was expected and found, and the remedy.
std::unique_ptr<Dataset> open_dataset(const DatasetSpec& spec);
/// Opens all files of a part of a set that has `open_file`, or the one file that `place` is.
std::unique_ptr<StoredImages> open_images(const KnownDataset& known,
                                          const std::filesystem::path& place, bool train,
                                          const ClassLimit& limit = {});

/// Lists the files that reading the spec's part needs, for staging: those below its directory, and
/// those that descriptions of raw arrays and links of HDF5 lead to. ConfigError for generated data,
/// which have no files; BadFile as open_dataset().
std::vector<std::filesystem::path> dataset_files(const DatasetSpec& spec);

/// IoError unless the fields of both parts have the same types and shapes. `part`: "test".
void check_same_fields(const Dataset& train, const Dataset& other, std::string_view part);

}  // namespace tutti::data
