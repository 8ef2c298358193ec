#pragma once
// The data sets that Tutti knows by name: what they are, their files, and how to get them. Tutti
// downloads nothing unless `tutti data fetch` asks for it.

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "tutti/data/dataset.h"

namespace tutti::data {

struct KnownDataset {
  std::string name;         ///< what a configuration says: "cifar10"
  std::string description;  ///< one line: images, classes, sizes
  int classes = 0;          ///< of the published files; others in the same format may have more
  std::vector<std::string> train_files, validation_files{}, test_files;
  /// Of those that are read where there are any.
  bool test_files_may_lack = false;
  std::string how_to_get;               ///< one sentence; FOLDER in it stands for the user's
  FieldStatistics statistics{};         ///< of the training images
  std::vector<std::string> transforms;  ///< steps of its fields where the configuration has none
  bool can_be_generated = false;        ///< by 'tutti data generate'
  /// Of a set that can be generated or downloaded: where it is published, and what a generated
  /// sample's file is called but for its digits. Downloaded ones have other names.
  std::string published{}, generated_file{};
};

/// cifar10, mnist, fashion-mnist, lattices, cosmoflow, deepcam, imagenet, neurons, cbed, stem,
/// clicks, text, tokens, token-pairs; and arrays, which is any files.
const std::vector<KnownDataset>& known_datasets();

/// ConfigError listing the known names.
const KnownDataset& known_dataset(std::string_view name);

/// The names under which a file of the catalog's lists may lie: as it is, with .gz, and of IDX
/// files with a dot for the dash ("train-images.idx3-ubyte"), as some mirrors have them.
std::vector<std::string> spellings_of(std::string file);

/// What 'tutti data generate' makes: data sets with a name, and those that are read as arrays.
std::vector<std::string> generated_sets();
/// Their names: "lattices, cosmoflow, deepcam, imagenet, neurons, cbed, stem, clicks, text,
/// token-pairs and protein".
std::string names_of_generated();

/// how_to_get for this folder (or that of this file), which error messages end with: what it says
/// can be typed as it stands, and does not put generated samples in the place of downloaded ones.
std::string how_to_get(const KnownDataset& known, const std::filesystem::path& dir);

}  // namespace tutti::data
