#include "tutti/cli/network_flags.h"

#include <algorithm>

#include "tutti/models/summary.h"

namespace tutti {

ModelSpec model_spec(const NetworkChoice& choice) {
  ModelSpec spec;
  spec.name = choice.model;
  spec.batch = choice.batch;
  spec.classes = choice.classes;
  spec.width = choice.width;
  spec.activations = choice.precision == "bf16" ? DType::bf16 : DType::f32;
  return spec;
}

int64_t usual_batch(ModelSpec spec) {
  constexpr int64_t kMost = 128, kBytes = int64_t{2} << 30;
  spec.batch = 1;
  int64_t elements = 0;
  for (const LayerSummary& layer : summarise(spec).layers) elements += layer.output.elements();
  const int64_t bytes = elements * static_cast<int64_t>(size_of(spec.activations));
  int64_t batch = kMost;
  while (batch > 1 && batch * bytes > kBytes) batch /= 2;
  return batch;
}

std::vector<Flag> network_flags(NetworkChoice& choice) {
  return {{.names = "--batch",
           .value = "N",
           .help = "Samples of a step on each rank. 0: 128, or fewer where samples are large",
           .bind = &choice.batch,
           .least = 0},
          {.names = "--precision",
           .help = "Type of activations and of arithmetic",
           .bind = &choice.precision,
           .choices = {"fp32", "bf16"}},
          {.names = "--classes",
           .value = "N",
           .help = "Outputs. 0: the model's own",
           .bind = &choice.classes,
           .least = 0},
          {.names = "--width",
           .value = "N",
           .help = "Channels of the first stage. 0: the model's own",
           .bind = &choice.width,
           .least = 0},
          {.names = "--layout",
           .help = "Layout of activations. auto: the fastest measured; without measuring, the "
                   "backend's first",
           .bind = &choice.layout,
           .choices = {"auto", "b16c", "last", "plain"}}};
}

}  // namespace tutti
