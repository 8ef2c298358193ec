#pragma once
// FC-DenseNet, a fully convolutional network of dense blocks that gives a value at each position
// (Jegou, Drozdzal, Vazquez, Romero, Bengio 2017, "The one hundred layers tiramisu").

#include <vector>

#include "tutti/models/block/model.h"

namespace tutti::models {

struct FcDenseNetSpec {
  int64_t outputs = 0;
  std::vector<int> layers{};  ///< layers in each dense block on the way down; the blocks on the way
                              ///< up mirror them
  int bottleneck = 0;         ///< layers of the block between
  int64_t growth = 0;         ///< maps that a layer adds
  int64_t first = 48;         ///< maps of the first convolution
  float dropout = 0.2f;
  ops::Mode mode = ops::Mode::train;
};

/// Returns the published sizes: 56, 67 and 103 layers. Throws ConfigError for another depth.
FcDenseNetSpec fc_densenet(int depth);

/// images [N, C, H, W] -> [N, outputs, H, W]. H and W must be multiples of 2^blocks: each block on
/// the way down ends in a maximum of 2x2, and each block on the way up begins with a transposed
/// convolution of stride 2 over the maps that the block before it added. A layer is batch norm,
/// ReLU, 3x3 convolution with bias, dropout. Parameters are named as in the usual PyTorch program
/// (denseBlocksDown.0.layers.0.conv.weight). Throws ConfigError for images of another size.
Value fc_densenet_prediction(Graph& graph, Value images, const FcDenseNetSpec& spec);

}  // namespace tutti::models
