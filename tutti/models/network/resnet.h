#pragma once
// Residual networks (He, Zhang, Ren, Sun, "Deep residual learning for image recognition", 2015),
// original form: convolution, batch norm, ReLU; addition before the last ReLU of a block.
// Convolutions have no bias and start as N(0, 2 / fan_out), as in the authors' code and
// torchvision's (many CIFAR implementations use fan_in); the classifier starts as PyTorch's Linear.

#include "tutti/models/block/model.h"

namespace tutti::models {

/// Depth 6n + 2: one 3x3 convolution, three stages of n blocks with width, 2 width, 4 width
/// channels (16, 32, 64), global average, "linear". Default shortcut: A.
Value cifar_resnet_logits(Graph& graph, Value images, const ModelSpec& spec, int depth);

/// Depth 18 or 50: 7x7 convolution and 3x3 maximum pooling, both with stride 2, four stages from
/// `width` (64) channels on, global average, "fc". In a bottleneck block the 3x3 convolution has
/// the stride, as in torchvision. Default shortcut: B.
Value imagenet_resnet_logits(Graph& graph, Value images, const ModelSpec& spec, int depth);

}  // namespace tutti::models
