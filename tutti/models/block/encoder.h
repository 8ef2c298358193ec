#pragma once
// Layers in which all positions of a sequence see each other, with the norm before each part (as in
// Dosovitskiy et al. 2021):
//
//   x = x + attn.proj(attention(attn.qkv(norm1(x))))
//   x = x + mlp.fc2(gelu(mlp.fc1(norm2(x))))                 `depth` times
//
// Parameters are blocks.0.attn.qkv.weight and so on, as those of the PyTorch package timm. Weights
// start as N(0, 0.02^2) cut at two deviations, biases as 0.

#include "tutti/models/block/model_builder.h"
#include "tutti/models/block/sizes.h"

namespace tutti::models {

struct EncoderSpec {
  int64_t depth = 12, width = 768, heads = 12;
  int64_t hidden = 0;           ///< width of the MLPs; 0: 4 width
  float dropout = 0;            ///< dropout before each addition to the residual sum
  float attention_dropout = 0;  ///< dropout of attention's probabilities
  ops::Mode mode = ops::Mode::train;
};

inline constexpr double kEncoderDeviation = 0.02;
inline constexpr ops::LayerNormAttributes kEncoderNorm{.epsilon = 1e-6f};

/// Returns the distribution that weights start from.
Init encoder_init(Init::Stored stored = Init::Stored::as_it_is);
/// Adds a layer on each position by itself, with weights from encoder_init.
Value encoder_linear(Graph& graph, const std::string& name, Value x, int64_t outputs);

/// Takes x [N, width, T] and returns the same shape. `padding`: i32 [N, T], below 0 at positions
/// that no position sees; invalid: all are seen.
Value encoder_layers(Graph& graph, Value x, Value padding, const EncoderSpec& spec);

}  // namespace tutti::models
