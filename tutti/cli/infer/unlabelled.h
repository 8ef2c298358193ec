#pragma once
// Opens files without labels as a data set, for predictions.

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "tutti/config/config.h"
#include "tutti/data/arrays/field_line.h"
#include "tutti/data/dataset.h"
#include "tutti/data/transform/sample_writer.h"
#include "tutti/train/network/given_weights.h"

namespace tutti::cli {

struct UnlabelledFiles {
  std::vector<std::filesystem::path> files;
  /// Lines of data.fields for fields that the network reads; the other fields lie as in the
  /// configured data set.
  std::vector<std::string> fields{};
};

/// Opens the fields that the network reads and, so that the network is the same as in training,
/// empty fields for those it learned. The latter come from the weights' checkpoint, else from the
/// configured data set if tasks or outputs depend on it and it can be opened; else there is one
/// class number for each sample. data.target and model.classes are the run's where the
/// configuration has none. If it is unclear where samples lie in the files, the training files
/// decide. Throws ConfigError where nothing decides it, or which array is meant; throws BadFile.
/// Targets have the statistics and units that the configuration and its files give, so that
/// predictions can be converted back to the data's values.
std::unique_ptr<data::Dataset> open_unlabelled(config::RunConfig& config,
                                               const UnlabelledFiles& files,
                                               const train::FoundWeights& found);

/// Returns the fields that the network learned, for a set that has only the fields `inputs`, as
/// above.
std::vector<data::Field> take_targets(config::RunConfig& config, const train::FoundWeights& found,
                                      const std::vector<data::FieldLine>& inputs);

/// Returns images without classes: JPEG and PNG files, or folders of them and of folders, in the
/// order of their names. Throws ConfigError, and BadFile where there are none.
std::vector<std::filesystem::path> listed_images(const std::vector<std::string>& entries);
std::unique_ptr<data::Dataset> open_unlabelled_images(
    config::RunConfig& config, const std::vector<std::filesystem::path>& files,
    const train::FoundWeights& found);

/// Opens click logs whose lines may lack the clicks, with the tables of the configuration.
std::unique_ptr<data::Dataset> open_unlabelled_clicks(
    const config::RunConfig& config, const std::vector<std::filesystem::path>& files);

/// Returns a writer for the inputs only: the transforms of other fields do not matter.
data::SampleWriter input_writer(const config::RunConfig& config, const data::Dataset& dataset,
                                const std::vector<data::BatchField>& inputs);

}  // namespace tutti::cli
