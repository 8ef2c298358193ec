#pragma once
// Describes the predictions in the files of `infer` and `eval`: which sample each row is, and what
// the numbers are.

#include <map>
#include <string>
#include <vector>

#include "tutti/config/config.h"
#include "tutti/data/dataset.h"
#include "tutti/data/format/array/row_writer.h"
#include "tutti/train/network/given_weights.h"
#include "tutti/train/settings/units.h"

namespace tutti::cli {

/// The source of the predictions, and its samples; all members must outlive this.
struct PredictionSource {
  const config::RunConfig& config;
  const models::ModelSpec& model;
  const data::Dataset& dataset;
  const train::FoundWeights& found;
  std::string weights;  ///< --weights
  std::string split;    ///< "validation"; "files" for --input
};

using RowAttributes = std::map<std::string, data::ArrayAttribute>;
/// Returns program, data, split, model, weights, checkpoint and step; for a prediction with a
/// target field, values, units, undone, not_undone and classes (one a line). Unknown attributes are
/// absent.
RowAttributes attributes_of(const PredictionSource& source, const std::string& prediction);

/// Returns the columns index, the number of each sample in its data set, and file and row, where it
/// lies, if that is known.
std::vector<data::RowColumn> row_columns(const data::SampleOrigins& origins, int64_t samples);

/// Returns a line for each sample: its file, and after a tab its row in it where files hold
/// several. Empty where files are not known.
std::string origin_lines(const data::SampleOrigins& origins);

}  // namespace tutti::cli
