#pragma once
// The parts of a run's data: for training, for judging it on the way, and for measuring its result.

#include <string_view>

#include "tutti/data/dataset.h"

namespace tutti::train {

/// Pointers are borrowed. At least one of validation and test is given.
struct RunData {
  const data::Dataset* train = nullptr;
  const data::Dataset* validation = nullptr;  ///< null: the test set is evaluated
  const data::Dataset* test = nullptr;        ///< null: there is none
  /// Wider samples with the same numbers as those of `train`, on which fields of view move in
  /// training; null: fields do not move.
  const data::Dataset* canvases = nullptr;

  /// Returns the part that decides on target, best weights, early stopping and plateaus.
  const data::Dataset& judge() const { return validation ? *validation : *test; }
  std::string_view judge_name() const { return validation ? "validation" : "test"; }
  /// Returns whether the test set is only used at the end of the run.
  bool tested_at_end() const { return validation && test; }
};

}  // namespace tutti::train
