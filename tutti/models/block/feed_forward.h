#pragma once
// Small networks without shortcuts. Layers start as PyTorch's Conv2d and Linear: uniform within 1 /
// sqrt(fan_in).

#include "tutti/models/block/model.h"

namespace tutti::models {

/// Dense layers "fc1", "fc2", ... with ReLU between them; hidden sizes 256 and 128 unless
/// spec.hidden says otherwise.
Value mlp_logits(Graph& graph, Value images, const ModelSpec& spec);

/// "conv1" 6 channels 5x5 with padding 2, "conv2" 16 channels 5x5, each with ReLU and 2x2 maximum
/// pooling; "fc1" 120, "fc2" 84, "fc3".
Value lenet_logits(Graph& graph, Value images, const ModelSpec& spec);

}  // namespace tutti::models
