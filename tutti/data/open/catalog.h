#pragma once
// Describes the data sets that Tutti knows by name: their content, their files, and how to get
// them. Tutti downloads nothing unless `tutti data fetch` asks for it.

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "tutti/data/dataset.h"

namespace tutti::data {

struct KnownDataset {
  std::string name;         ///< its name in a configuration: "cifar10"
  std::string description;  ///< one line: images, classes, sizes
  int classes = 0;          ///< in the published files; others of the same format may have more
  std::vector<std::string> train_files, validation_files{}, test_files;
  /// Test files are read if they exist.
  bool test_files_may_lack = false;
  std::string how_to_get;               ///< one sentence; FOLDER stands for the user's folder
  FieldStatistics statistics{};         ///< statistics of the training images
  std::vector<std::string> transforms;  ///< steps for its fields, if the configuration has none
  bool can_be_generated = false;        ///< 'tutti data generate' can make it
  /// For a set that can be generated or downloaded: where it is published, and the name of a
  /// generated sample's file, up to its digits. Downloaded files have other names.
  std::string published{}, generated_file{};
};

/// Lists cifar10, mnist, fashion-mnist, lattices, cosmoflow, deepcam, imagenet, neurons, cbed,
/// stem, clicks, text, tokens, token-pairs; and arrays, which is any files.
const std::vector<KnownDataset>& known_datasets();

/// Finds a set. ConfigError listing the known names.
const KnownDataset& known_dataset(std::string_view name);

/// Returns the names that a file of the catalog may have: its own, with .gz, and for IDX files with
/// a dot for the dash ("train-images.idx3-ubyte"), as on some mirrors.
std::vector<std::string> spellings_of(std::string file);

/// Returns the sets that 'tutti data generate' makes: named data sets, and sets read as arrays.
std::vector<std::string> generated_sets();
/// Returns their names: "lattices, cosmoflow, deepcam, imagenet, neurons, cbed, stem, clicks, text,
/// token-pairs, protein and vibrations".
std::string names_of_generated();

/// Returns how_to_get for this folder (or this file's folder), for the end of error messages:
/// commands in it can be typed as they stand, and do not replace downloaded samples by generated
/// ones.
std::string how_to_get(const KnownDataset& known, const std::filesystem::path& dir);

}  // namespace tutti::data
