#pragma once
// Files without labels as a data set, for predictions.

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "tutti/data/dataset.h"
#include "tutti/data/transform/sample_writer.h"
#include "tutti/train/config.h"
#include "tutti/train/run_settings.h"

namespace tutti {

struct UnlabelledFiles {
  std::vector<std::filesystem::path> files;
  /// Lines of data.fields for fields that the network reads; the others lie as in the configured
  /// data set.
  std::vector<std::string> fields{};
};

/// The samples of such files.
class UnlabelledSet : public data::Dataset {
 public:
  /// A line for each sample: its file, and behind a tab its number in it where files hold several.
  virtual std::string origins() const = 0;
};

/// The fields that the network reads, from the files; and, so that the network is the one that was
/// trained, a field for its target, which says how many outputs there are and holds nothing. Their
/// number: model.classes, the checkpoint's (`before`, may be empty), or the data set's classes.
/// Where samples lie in the files, the training files say where they can be read.
/// ConfigError where none says it, or which array is meant; BadFile.
std::unique_ptr<UnlabelledSet> open_unlabelled(const RunConfig& config,
                                               const UnlabelledFiles& files,
                                               const RunSettings& before);

/// Fills the inputs alone: the steps of other fields do not matter.
data::SampleWriter input_writer(const RunConfig& config, const data::Dataset& dataset,
                                const std::vector<data::BatchField>& inputs);

}  // namespace tutti
