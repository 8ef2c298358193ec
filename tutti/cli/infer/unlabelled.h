#pragma once
// Files without labels as a data set, for predictions.

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "tutti/config/config.h"
#include "tutti/data/arrays/field_line.h"
#include "tutti/data/dataset.h"
#include "tutti/data/transform/sample_writer.h"
#include "tutti/train/network/given_weights.h"

namespace tutti {

struct UnlabelledFiles {
  std::vector<std::filesystem::path> files;
  /// Lines of data.fields for fields that the network reads; the others lie as in the configured
  /// data set.
  std::vector<std::string> fields{};
};

/// The fields that the network reads, from the files; and, so that the network is the one that was
/// trained, the fields that it learned, which hold nothing: as the checkpoint of the weights keeps
/// them, else as the configured data set has them where tasks or outputs follow from that and it
/// can be opened, else one of class numbers of a sample. data.target and model.classes become those
/// of the run where the configuration has none. Where samples lie in the files, the training files
/// say where they can be read. ConfigError where none says it, or which array is meant; BadFile.
/// Targets have the statistics and the units that the configuration and its files give them, so
/// that predictions find back to the data's.
std::unique_ptr<data::Dataset> open_unlabelled(RunConfig& config, const UnlabelledFiles& files,
                                               const FoundWeights& found);

/// The fields that the network learned, for a set that has the fields `inputs` alone, as above.
std::vector<data::Field> take_targets(RunConfig& config, const FoundWeights& found,
                                      const std::vector<data::FieldLine>& inputs);

/// Images without classes: JPEG and PNG, files or folders of them and of folders, in the order of
/// their names. ConfigError, BadFile where there are none.
std::vector<std::filesystem::path> listed_images(const std::vector<std::string>& entries);
std::unique_ptr<data::Dataset> open_unlabelled_images(
    RunConfig& config, const std::vector<std::filesystem::path>& files, const FoundWeights& found);

/// Click logs whose lines need not say what was clicked, with the tables of the configuration.
std::unique_ptr<data::Dataset> open_unlabelled_clicks(
    const RunConfig& config, const std::vector<std::filesystem::path>& files);

/// Fills the inputs alone: the steps of other fields do not matter.
data::SampleWriter input_writer(const RunConfig& config, const data::Dataset& dataset,
                                const std::vector<data::BatchField>& inputs);

}  // namespace tutti
