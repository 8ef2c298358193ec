#pragma once
// open_dataset: from a name and a place to a Dataset.

#include <filesystem>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "tutti/data/clicks/click_set.h"
#include "tutti/data/dataset.h"
#include "tutti/data/format/sets/stored_images.h"
#include "tutti/data/neurons/neuron_set.h"
#include "tutti/data/text/text_set.h"

namespace tutti::data {

/// Of the data set "arrays": files of the user's own, as data.fields and its neighbours say.
struct ArraysSpec {
  /// Of each split: files, folders, patterns, from the directory on. Without any there is no such
  /// set.
  std::vector<std::string> train{}, validation{}, test{};
  std::vector<std::string> fields{};  ///< lines of data.fields
  std::string statistics{};           ///< a file, from the working folder on; empty: none
};

struct DatasetSpec {
  std::string name;             ///< a name of the catalog
  std::filesystem::path dir{};  ///< its directory; for cifar10 and lattices also one file, whatever
                                ///< the split; lattices: empty = generate
  std::string split = "train";  ///< train, validation or test
  ClassLimit classes{};         ///< labels lie below it

  // Of generated lattices only.
  uint64_t seed = 1;
  int64_t count = 0;       ///< images; 0 = 10,000 for train and 2,000 for test
  int threads = 1;         ///< that generate them; the images do not depend on it
  bool when_read = false;  ///< each is made when it is read, instead of all at once

  ArraysSpec arrays{};
  NeuronSetSpec neurons{};  ///< its files and fields are those of `arrays`
  ClickSetSpec clicks{};    ///< its files are those of `arrays`
  TextSetSpec text{};       ///< of "text" and "tokens"; its files are those of `arrays`. Of
                            ///< "token-pairs" the window
};

/// Whether the data set has the spec's part: cosmoflow and deepcam have a validation set, and a
/// test set where there is a folder of that name; clicks have what files are named for, or a
/// folder; text and tokens what files are named for, or have names for; arrays have what files are
/// named for; the others have a test set. ConfigError for an unknown name or part.
bool has_split(const DatasetSpec& spec);

/// Opens and checks a data set. ConfigError for an unknown name, a part that it does not have, no
/// directory in the specification, or a label beyond the classes; IoError for files that are
/// missing, truncated or corrupted, naming the file, what was expected and found, and what to do.
std::unique_ptr<Dataset> open_dataset(const DatasetSpec& spec);

/// The files that reading the spec's part needs, below its directory, those among them to which
/// descriptions of raw arrays and links of HDF5 lead: what staging copies.
/// ConfigError for generated data, which have none; BadFile as open_dataset().
std::vector<std::filesystem::path> dataset_files(const DatasetSpec& spec);

/// IoError unless the fields of both parts have the same types and shapes. `part`: "test".
void check_same_fields(const Dataset& train, const Dataset& other, std::string_view part);

}  // namespace tutti::data
