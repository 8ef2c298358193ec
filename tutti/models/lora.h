#pragma once
// LoRA (Hu et al. 2021): in a layer y = W x, W keeps the values it was given, and A and B of
//   y = W x + alpha / rank * B A x
// are trained: NAME.lora_A.weight [rank, channels], NAME.lora_B.weight [outputs, rank], as in the
// package peft. B starts at 0, so that the network begins as the given one.

#include "tutti/models/block/model.h"

namespace tutti::models {

/// Names of the parameters that LoRA trains, as a shell pattern.
inline constexpr const char* kLoraNames = "*.lora_[AB].weight";

/// Returns the same network with LoRA beside each linear layer (ops/sequence/sequence.h) whose name
/// matches a pattern of `lora.layers`. Throws ConfigError for a pattern that matches none.
ModelGraph with_lora(const ModelGraph& model, const LoraSpec& lora);

}  // namespace tutti::models
