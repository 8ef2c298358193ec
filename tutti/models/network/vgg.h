#pragma once
// VGG with batch norm (Simonyan and Zisserman 2014, table 1, configurations A, B, D, E).

#include "tutti/models/block/model.h"

namespace tutti::models {

/// images [N, C, H, W] with H and W of 32 or more -> [N, spec.classes]. Depths 11, 13, 16 and 19:
/// five stages of 3x3 convolutions with bias, batch norm and ReLU, each before a maximum of 2x2;
/// then dense layers of spec.hidden (4096, 4096) with ReLU and dropout (0.5). The first dense layer
/// reads the convolutions' 512 maps of H / 32 x W / 32, so its size depends on the images; for
/// 224x224 it is torchvision's 7x7. Parameters have torchvision's names. spec.width is the
/// number of channels in the first stage (64). Throws ConfigError for smaller images.
Value vgg_bn_logits(Graph& graph, Value images, const ModelSpec& spec, int depth);

}  // namespace tutti::models
