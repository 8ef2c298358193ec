#pragma once
// A data set that Tutti knows by name: its content, its files, and how to get them. A reader of
// such files lists its sets beside itself (cifar.h); open/catalog.h lists all.

#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "tutti/data/format/sets/stored_images.h"

namespace tutti::data {

struct KnownDataset {
  std::string name;         ///< its name in a configuration: "cifar10"
  std::string description;  ///< one line: images, classes, sizes
  int classes = 0;          ///< in the published files; others of the same format may have more
  std::vector<std::string> train_files{}, validation_files{}, test_files{};
  /// Test files are read if they exist.
  bool test_files_may_lack = false;
  std::string how_to_get;                 ///< one sentence; FOLDER stands for the user's folder
  FieldStatistics statistics{};           ///< statistics of the training images
  std::vector<std::string> transforms{};  ///< steps for its fields, if the configuration has none
  bool can_be_generated = false;          ///< 'tutti data generate' can make it
  /// For a set that can be generated or downloaded: where it is published, and the name of a
  /// generated sample's file, up to its digits. Downloaded files have other names.
  std::string published{}, generated_file{};
  /// For sets of images in few files: opens one of train_files or test_files. BadFile naming the
  /// file, what was expected and what was found; ConfigError for a label that the limit does not
  /// allow.
  std::function<StoredImages(const std::filesystem::path& file, const ClassLimit& limit)>
      open_file{};
};

}  // namespace tutti::data
