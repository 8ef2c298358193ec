#pragma once
// A network that flags choose, without a configuration: for verbs that show or time one.

#include <string>
#include <vector>

#include "tutti/cli/flags/flags.h"
#include "tutti/models/block/model.h"

namespace tutti::cli {

struct NetworkChoice {
  std::string model, precision = "fp32", layout = "auto";
  int64_t batch = 0, classes = 0, width = 0;  ///< batch 0: usual_batch()
  int64_t depth = 0, heads = 0;               ///< 0: the model's own
  int64_t table_rows = 0;                     ///< rows of each table; 0: the model's own
  std::vector<int64_t> input{};               ///< shape of a sample; empty: the model's own
  std::string task = "auto", loss = "mse";    ///< loss: for numbers
};

models::ModelSpec model_spec(const NetworkChoice& choice);

/// Returns the batch of a network for which none is given: 128 samples, or for large networks the
/// power of two whose layers' outputs fill about 2 GiB. `spec.batch` does not matter.
int64_t usual_batch(models::ModelSpec spec);

/// Returns all but --model: --batch, --precision, --classes, --width, --depth, --heads,
/// --table-rows, --input, --task, --loss, --layout.
std::vector<Flag> network_flags(NetworkChoice& choice);

}  // namespace tutti::cli
