#pragma once
// The parts and the cost of a model, for people to read: `tutti model show`.

#include <string>
#include <vector>

#include "tutti/models/block/model.h"

namespace tutti::models {

struct LayerSummary {
  std::string name;  ///< "layer1.0.conv1"
  std::string op;    ///< op with its attributes: "conv stride 2x2 pad 1,1x1,1"
  Shape output;      ///< shape for one sample, without the batch
  int64_t parameters = 0;
  double flop = 0;  ///< forward, one sample; a multiplication and an addition count as two
};

struct ModelSummary {
  std::string name, description;
  Shape input{};  ///< shape of one sample
  TaskKind task = TaskKind::classify;
  int64_t classes = 0;                 ///< number of outputs; in a regression, of numbers
  std::vector<LayerSummary> layers{};  ///< in forward order
  int64_t parameters = 0;              ///< trained elements
  int64_t statistics = 0;              ///< elements of running averages
  double forward_flop = 0;             ///< one sample, evaluation
  double training_flop = 0;            ///< one sample, forward and backward
};

/// Summarises a model. `spec.batch` and `spec.mode` do not matter. Throws ConfigError as
/// build_model.
ModelSummary summarise(const ModelSpec& spec);

/// Returns a table, one line a layer, and the totals.
std::string to_text(const ModelSummary& summary);

/// Returns 82'700'000 as "82.7 M", 1234 as "1.23 k".
std::string with_unit(double value);

}  // namespace tutti::models
