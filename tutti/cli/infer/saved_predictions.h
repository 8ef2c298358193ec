#pragma once
// The output of `tutti eval --save-predictions`: fields, truth and predictions as arrays, and
// pictures.

#include <filesystem>
#include <span>

#include "tutti/cli/infer/prediction_rows.h"
#include "tutti/config/config.h"
#include "tutti/data/dataset.h"
#include "tutti/models/block/model.h"
#include "tutti/train/network/network.h"

namespace tutti::cli {

struct SavedPredictions {
  const config::RunConfig& config;
  const data::Dataset& dataset;
  const models::ModelSpec& model;
  const PredictionSource& source;
  const train::EvaluationNetwork& network;
  std::span<const std::vector<float>> predictions;  ///< one array each, for the first samples, in
                                                    ///< plain layout
  int64_t samples = 0;
};

/// Throws ConfigError where files exist that would be overwritten or mixed up.
void require_empty_folder(const std::filesystem::path& folder);

/// Refuses a file of predictions that cannot be written, before anything takes time: throws
/// ConfigError where its ending is none of open_row_writer()'s, and IoError where its folder does
/// not exist.
void require_output(const std::filesystem::path& file, const std::string& key);

/// Makes the folder, and in it: FIELD.npy for each field as it is stored; prediction.npy and
/// truth.npy, the network's predictions and their targets, in the units of the data and the
/// network's extents (with several predictions prediction.NAME.npy, truth.NAME.npy; values that the
/// model reads out have no truth), each with .npy.json as `infer` writes it; and for the first 16
/// samples sample_0000.png: for maps the input's first channel, truth and the first prediction side
/// by side; for volumes the middle slice of up to four channels; for images the first channel. For
/// numbers also scatter.png, all first predictions over their truth. Throws ConfigError, and
/// IoError naming the file.
void save_predictions(const std::filesystem::path& folder, const SavedPredictions& saved);

/// Returns out.npy for the only prediction, out.NAME.npy for one of several.
std::filesystem::path path_of_output(std::filesystem::path path, const std::string& name);

}  // namespace tutti::cli
