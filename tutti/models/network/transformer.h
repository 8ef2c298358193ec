#pragma once
// The Transformer (Vaswani et al. 2017, "Attention Is All You Need"): an encoder that reads one
// sequence and a decoder that writes another from it.
//
//   x = embedding[token] sqrt(width) + position             sinusoids (ops/sequence/waves.h)
//   encoder  x = norm1(x + self_attention(x))                       `depth` times; padding masked
//            x = norm2(x + linear2(relu(linear1(x))))
//   decoder  y = norm1(y + self_attention(y))                       `depth` times; causal
//            y = norm2(y + cross_attention(y, x))
//            y = norm3(y + linear2(relu(linear1(y))))
//   logits = embedding y                                    by the weights of the target's tokens
//
// As in the paper, projections of attention have no biases, norms come after the sums and none
// after the last layer, and dropout is applied before each sum and to the embeddings with their
// positions. Weights start as Glorot's for one projection, embeddings as N(0, 1 / width). Names are
// those of PyTorch's nn.Transformer where the parameters are the same; q, k and v of
// self-attention, and k and v of cross-attention, are one layer.

#include "tutti/models/block/model_builder.h"

namespace tutti::models {

struct TransformerSpec {
  int64_t source_vocabulary = 0;  ///< a separate vocabulary of the source, with weights of its own;
                                  ///< 0: source and target share tokens and weights
  int64_t vocabulary = 37000;     ///< tokens of the target
  int64_t depth = 6, width = 512, heads = 8;
  int64_t hidden = 2048;  ///< width of the hidden layer between two attentions
  float dropout = 0.1f;
  float attention_dropout = 0;  ///< dropout of attention's probabilities; the paper has none
  ops::Mode mode = ops::Mode::train;
};

/// source i32 [N, S] and tokens i32 [N, T], which begin with the start token and then hold the
/// target, both -1 after their ends -> logits [N, vocabulary, T] of the next tokens. Throws
/// ConfigError where the sizes do not fit.
Value transformer_logits(Graph& graph, Value source, Value tokens, DType activations,
                         const TransformerSpec& spec);

/// Builds with the sizes that ModelSpec gives, and else those of `own`.
void build_transformer(ModelBuilder& model, const TransformerSpec& own);

}  // namespace tutti::models
