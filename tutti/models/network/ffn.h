#pragma once
// The flood-filling network (Januszewski et al. 2018, "High-precision automated reconstruction of
// neurons with flood-filling networks") predicts which voxels belong to the object that contains a
// seed.

#include "tutti/models/block/model_builder.h"

namespace tutti::models {

struct FfnSpec {
  int64_t depth = 12;     ///< pairs of convolutions
  int64_t features = 32;  ///< channels of each convolution but the last
};

/// image and seed [N, 1, D, H, W] -> logits of the same shape: the seed's logits plus the output of
/// a stack of 3x3x3 convolutions over both. The stack is two convolutions, `depth` - 1 residual
/// modules of two each, and one of 1x1x1. Throws ConfigError for other shapes.
Value ffn_logits(Graph& graph, Value image, Value seed, const FfnSpec& spec = {});

/// Builds the network on the model's fields; the loss is the cross entropy of each voxel.
void build_ffn(ModelBuilder& model);

}  // namespace tutti::models
