#pragma once
// In which units predictions, their targets and their metrics are.
//
// A network learns a field as data.transforms leave it. People read it as the files have it: what a
// network of numbers predicts goes back through the steps that have an inverse (divide, multiply,
// add, log1p, normalise, min-max) before it is judged, written or drawn, and its targets do the
// same. Losses stay as they are trained. Logits of zeros and ones are no numbers of the field, and
// are left alone.

#include <string>
#include <vector>

#include "tutti/config/config.h"
#include "tutti/data/transform/derived_field.h"
#include "tutti/models/block/model.h"
#include "tutti/train/network/network.h"

namespace tutti {

/// Fills unit, undone and kept of a field that is learned.
void note_units(const data::Field& field, const data::FieldSteps& steps, ModelField& noted);

/// The quantity that the numbers of one prediction stand for.
struct PredictionUnits {
  std::string prediction{};  ///< its name; empty: the only one
  std::string field{};       ///< that it learns
  std::string values{};      ///< "in the units of the data", "logits: above 0 stands for one"
  std::string unit{};        ///< "K"; empty: not known, or none
  std::string undone{}, kept{};

  /// One sentence for people; empty where a prediction needs none.
  std::string sentence() const;
};

/// The steps of each field that a network learns, of `dataset`, which has these fields.
std::vector<data::ValueFunction> steps_of_targets(const RunConfig& config,
                                                  const data::Dataset& dataset,
                                                  const EvaluationNetwork& network);

/// The units of each objective of a model whose fields are known.
std::vector<PredictionUnits> prediction_units(const ModelSpec& model);
/// Those of them that there are.
std::vector<std::string> unit_sentences(const ModelSpec& model);

}  // namespace tutti
