#pragma once
// Finding where a NaN or infinity first appears, after the fact.

#include <string>

#include "tutti/backend/backend.h"
#include "tutti/models/model.h"
#include "tutti/train/weights.h"

namespace tutti {

struct NonfiniteSearch {
  ModelSpec model;
  const Weights* weights = nullptr;
  const void* images = nullptr;
  TensorDesc images_desc;
  std::string layout;  ///< of the training plan: images_desc's layout follows from it
};

/// Repeats the forward pass on the same batch, layer by layer with everything kept, and says what is not finite first: "input image
/// 3", "parameter 'conv1.weight'", "the output of layer 'layer1.0.conv1' for sample 3". Slow; for the message of a run that ends.
std::string first_nonfinite(const NonfiniteSearch& search, const Backend& backend);

}  // namespace tutti
