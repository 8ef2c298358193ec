#pragma once
// LoRA (Hu et al. 2021): of a layer y = W x, W stays as it is given, and
//   y = W x + alpha / rank * B A x
// is trained: NAME.lora_A.weight [rank, channels], NAME.lora_B.weight [outputs, rank], as the
// package peft calls them. B starts at 0, so that the network begins as the given one.

#include "tutti/models/block/model.h"

namespace tutti {

/// Names of what LoRA trains, as a shell pattern.
inline constexpr const char* kLoraNames = "*.lora_[AB].weight";

/// The same network with LoRA beside each linear layer (ops/sequence/sequence.h) whose name a
/// pattern of `lora.layers` fits. ConfigError for a pattern that fits none.
ModelGraph with_lora(const ModelGraph& model, const LoraSpec& lora);

}  // namespace tutti
