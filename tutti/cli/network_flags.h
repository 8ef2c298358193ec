#pragma once
// A network as flags choose it, without a configuration: for verbs that look at one or time one.

#include <string>
#include <vector>

#include "tutti/cli/flags.h"
#include "tutti/models/model.h"

namespace tutti {

struct NetworkChoice {
  std::string model, precision = "fp32", layout = "auto";
  int64_t batch = 128, classes = 0, width = 0;
};

ModelSpec model_spec(const NetworkChoice& choice);

/// All but --model: --batch, --precision, --classes, --width, --layout.
std::vector<Flag> network_flags(NetworkChoice& choice);

}  // namespace tutti
