#pragma once
// The parts of a run's data: what it trains on, what judges it on the way, what measures its
// result.

#include <string_view>

#include "tutti/data/dataset.h"

namespace tutti {

/// Pointers are borrowed. One of validation and test is there.
struct RunData {
  const data::Dataset* train = nullptr;
  const data::Dataset* validation = nullptr;  ///< null: the test set judges
  const data::Dataset* test = nullptr;        ///< null: there is none
  /// What fields of view move on while training: samples of the same numbers as those of `train`,
  /// and wider; null: they stand still.
  const data::Dataset* canvases = nullptr;

  /// Target, best weights, early stopping and plateaus are a matter of this one.
  const data::Dataset& judge() const { return validation ? *validation : *test; }
  std::string_view judge_name() const { return validation ? "validation" : "test"; }
  /// Whether the test set waits for the end of the run.
  bool tested_at_end() const { return validation && test; }
};

}  // namespace tutti
