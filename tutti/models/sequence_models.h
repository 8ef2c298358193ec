#pragma once
// The rows of the registry for sequences: gpt2, llama, the encoder-decoder, vision transformers and
// encoders of sequences.

#include <vector>

#include "tutti/models/registry.h"

namespace tutti::models {

/// Returns the rows, sorted by family and size.
std::vector<ModelInfo> models_of_sequences();

}  // namespace tutti::models
