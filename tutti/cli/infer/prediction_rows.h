#pragma once
// Predictions stand in the files that `infer` and `eval` write beside these: which sample each row
// is, and what the numbers are.

#include <map>
#include <string>
#include <vector>

#include "tutti/config/config.h"
#include "tutti/data/dataset.h"
#include "tutti/data/format/array/row_writer.h"
#include "tutti/train/network/given_weights.h"
#include "tutti/train/settings/units.h"

namespace tutti {

/// The predictor and its samples; all of it must outlive this.
struct PredictionSource {
  const RunConfig& config;
  const ModelSpec& model;
  const data::Dataset& dataset;
  const FoundWeights& found;
  std::string weights;  ///< --weights
  std::string split;    ///< "validation"; "files" of --input
};

using RowAttributes = std::map<std::string, data::ArrayAttribute>;
/// program, data, split, model, weights, checkpoint and step; of a prediction with a target field,
/// values, units, undone, not_undone and classes (one a line). What is not known is not there.
RowAttributes attributes_of(const PredictionSource& source, const std::string& prediction);

/// index, the number of each sample in its data set; file and row, where it lies, if that is known.
std::vector<data::RowColumn> row_columns(const data::SampleOrigins& origins, int64_t samples);

/// A line for each sample: its file, and behind a tab its row in it where files hold several. Empty
/// where files are not known.
std::string origin_lines(const data::SampleOrigins& origins);

}  // namespace tutti
