#pragma once
// What `tutti eval --save-predictions` leaves: fields, truth and predictions as arrays, and
// pictures.

#include <filesystem>
#include <span>

#include "tutti/cli/infer/prediction_rows.h"
#include "tutti/config/config.h"
#include "tutti/data/dataset.h"
#include "tutti/models/block/model.h"
#include "tutti/train/network/network.h"

namespace tutti {

struct SavedPredictions {
  const RunConfig& config;
  const data::Dataset& dataset;
  const ModelSpec& model;
  const PredictionSource& source;
  const EvaluationNetwork& network;
  std::span<const std::vector<float>> predictions;  ///< each, of the first samples, plain layout
  int64_t samples = 0;
};

/// ConfigError where something is there that would be overwritten or mixed up.
void require_empty_folder(const std::filesystem::path& folder);

/// Refuses a file of predictions that could not be written, before anything takes time: ConfigError
/// where its ending is none of open_row_writer()'s, IoError where its folder is not there.
void require_output(const std::filesystem::path& file, const std::string& key);

/// Makes the folder, and in it: FIELD.npy of each field as it is stored; prediction.npy and
/// truth.npy, what the network predicts and what it should, in the units of the data and the
/// network's extents (of several predictions prediction.NAME.npy, truth.NAME.npy; what the model
/// reads out has no truth), with .npy.json of each, as `infer` has them;
/// and for the first 16 samples
/// sample_0000.png: of maps the input's first channel, truth and the first prediction side by side;
/// of volumes the middle slice of up to four channels; of images the first channel. Of numbers also
/// scatter.png, all first predictions over their truth. ConfigError, IoError naming the file.
void save_predictions(const std::filesystem::path& folder, const SavedPredictions& saved);

/// out.npy of the only prediction, out.NAME.npy of several.
std::filesystem::path path_of_output(std::filesystem::path path, const std::string& name);

}  // namespace tutti
