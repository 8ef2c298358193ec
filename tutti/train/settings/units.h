#pragma once
// The units of predictions, their targets and their metrics.
//
// A network learns a field after data.transforms. People read it in the units of the files: a
// numeric prediction passes back through the steps that have an inverse (divide, multiply, add,
// log1p, normalise, min-max) before it is measured, written or drawn, and so do its targets. Losses
// stay as in training. Logits of zeros and ones are not values of the field, and are left alone.

#include <string>
#include <vector>

#include "tutti/config/config.h"
#include "tutti/data/transform/derived_field.h"
#include "tutti/models/block/model.h"
#include "tutti/train/network/network.h"

namespace tutti::train {

/// Fills in unit, undone and kept for a learned field.
void note_units(const data::Field& field, const data::FieldSteps& steps, models::ModelField& noted);

/// The quantity that the numbers of one prediction represent.
struct PredictionUnits {
  std::string prediction{};  ///< its name; empty: the only one
  std::string field{};       ///< the field it learns
  std::string values{};      ///< "in the units of the data", "logits: above 0 stands for one"
  std::string unit{};        ///< "K"; empty: unknown, or none
  std::string undone{}, kept{};

  /// Returns one sentence for people; empty if a prediction needs none.
  std::string sentence() const;
};

/// Returns the steps of each field that a network learns; `dataset` has these fields.
std::vector<data::ValueFunction> steps_of_targets(const config::RunConfig& config,
                                                  const data::Dataset& dataset,
                                                  const EvaluationNetwork& network);

/// Returns the units of each objective of a model whose fields are known.
std::vector<PredictionUnits> prediction_units(const models::ModelSpec& model);
/// Returns the sentences of all objectives that have one.
std::vector<std::string> unit_sentences(const models::ModelSpec& model);

}  // namespace tutti::train
