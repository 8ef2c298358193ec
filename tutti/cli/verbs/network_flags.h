#pragma once
// A network as flags choose it, without a configuration: for verbs that look at one or time one.

#include <string>
#include <vector>

#include "tutti/cli/flags/flags.h"
#include "tutti/models/block/model.h"

namespace tutti {

struct NetworkChoice {
  std::string model, precision = "fp32", layout = "auto";
  int64_t batch = 0, classes = 0, width = 0;  ///< batch 0: usual_batch()
  int64_t depth = 0, heads = 0;               ///< 0: the model's own
  int64_t table_rows = 0;                     ///< of each table; 0: the model's own
  std::vector<int64_t> input{};               ///< of a sample; empty: the model's own
  std::string task = "auto", loss = "mse";    ///< the loss is of numbers
};

ModelSpec model_spec(const NetworkChoice& choice);

/// The batch of a network that nobody has given one: 128 samples, or the power of two of large ones
/// whose layers' outputs fill about 2 GiB. `spec.batch` does not matter.
int64_t usual_batch(ModelSpec spec);

/// All but --model: --batch, --precision, --classes, --width, --depth, --heads, --table-rows,
/// --input, --task,
/// --loss, --layout.
std::vector<Flag> network_flags(NetworkChoice& choice);

}  // namespace tutti
