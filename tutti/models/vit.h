#pragma once
// Vision transformer (Dosovitskiy et al. 2021): an image as a sequence of patches.
//
//   x = patch_embed.proj(image)                  a convolution, patch x patch, as far apart
//   x = [cls_token, x] + pos_embed
//   x = x + attn.proj(attention(attn.qkv(norm1(x))))          all positions see each other
//   x = x + mlp.fc2(gelu(mlp.fc1(norm2(x))))                  `depth` times
//   logits = head(norm(x)) at the class token
//
// Parameters are called as those of the PyTorch package timm (cls_token, blocks.0.attn.qkv.weight
// ...) and start as there: weights and positions N(0, 0.02^2) cut at two deviations, the class
// token N(0, 1e-12), biases 0, the patches' convolution as PyTorch's.

#include "tutti/models/model_builder.h"

namespace tutti {

/// Its own: ViT-B/16.
struct VitSpec {
  int64_t classes = 1000, patch = 16, depth = 12, width = 768, heads = 12;
  int64_t hidden = 0;           ///< of the MLPs; 0: 4 width
  float attention_dropout = 0;  ///< of attention's probabilities
  float dropout = 0;  ///< of the sequence, and of what is added to the residual sum; theirs: 0.1
  Mode mode = Mode::train;
};

/// x [N, C, H, W] -> logits [N, classes]. ConfigError where patches do not fill the image.
Value vit_logits(Graph& graph, Value x, const VitSpec& spec);

}  // namespace tutti
