#pragma once
// The Transformer (Vaswani et al. 2017, "Attention Is All You Need"): an encoder of one sequence
// and a decoder that writes another one from it.
//
//   x = embedding[token] sqrt(width) + position             sinusoids (ops/sequence/waves.h)
//   encoder  x = norm1(x + self_attention(x))                       `depth` times; of padding no key
//            x = norm2(x + linear2(relu(linear1(x))))
//   decoder  y = norm1(y + self_attention(y))                       `depth` times; causal
//            y = norm2(y + cross_attention(y, x))
//            y = norm3(y + linear2(relu(linear1(y))))
//   logits = embedding y                                    by the weights of the target's tokens
//
// As in the paper, projections of attention have no biases, norms stand behind the sums and none
// behind the last layer, and dropout is applied to what is added to each sum and to the embeddings
// with their positions. Weights start as Glorot's for one projection, embeddings as N(0, 1 /
// width). Names are those of PyTorch's nn.Transformer as far as parameters are the same ones; q, k
// and v of self-attention, and k and v of cross-attention, are one layer.

#include "tutti/models/block/model_builder.h"

namespace tutti {

struct TransformerSpec {
  int64_t source_vocabulary = 0;  ///< other tokens than the target's, with weights of their own; 0:
                                  ///< the same tokens and weights
  int64_t vocabulary = 37000;     ///< of the target
  int64_t depth = 6, width = 512, heads = 8;
  int64_t hidden = 2048;  ///< of the layers between two attentions
  float dropout = 0.1f;
  float attention_dropout = 0;  ///< of attention's probabilities; the paper has none
  Mode mode = Mode::train;
};

/// source i32 [N, S] and tokens i32 [N, T], the target behind a token that begins it, both -1
/// behind their ends -> logits [N, vocabulary, T] of the tokens that come next. ConfigError where
/// the sizes do not fit.
Value transformer_logits(Graph& graph, Value source, Value tokens, DType activations,
                         const TransformerSpec& spec);

/// With the sizes of ModelSpec where it has some, else those of `own`.
void build_transformer(ModelBuilder& model, const TransformerSpec& own);

}  // namespace tutti
