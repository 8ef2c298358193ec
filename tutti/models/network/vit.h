#pragma once
// Vision transformer (Dosovitskiy et al. 2021): an image as a sequence of patches.
//
//   x = patch_embed.proj(image)                  a convolution, patch x patch, as far apart
//   x = [cls_token, x] + pos_embed
//   x = layers of encoder.h                      `depth` of them
//   logits = head(norm(x)) at the class token
//
// Parameters have the names of the PyTorch package timm (cls_token, blocks.0.attn.qkv.weight ...)
// and start as there: weights and positions N(0, 0.02^2) cut at two deviations, the class token
// N(0, 1e-12), biases 0, the patches' convolution as PyTorch's.

#include "tutti/models/block/encoder.h"

namespace tutti::models {

/// The defaults are ViT-B/16. Dropout applies to the sequence, too; published: 0.1.
struct VitSpec {
  int64_t classes = 1000, patch = 16;
  EncoderSpec encoder{};
};

/// x [N, C, H, W] -> logits [N, classes]. Throws ConfigError where patches do not fill the image.
Value vit_logits(Graph& graph, Value x, const VitSpec& spec);

}  // namespace tutti::models
