#pragma once
// GPT-2 (Radford et al. 2019, "Language Models are Unsupervised Multitask Learners"): a decoder
// that predicts the next token.
//
//   x = wte[token] + wpe[position]
//   x = x + c_proj(attention(c_attn(ln_1(x))))              causal, of `heads` heads
//   x = x + mlp.c_proj(gelu(mlp.c_fc(ln_2(x))))             `depth` times
//   logits = wte ln_f(x)                                    by the weights of the tokens
//
// Parameters have the names of the published files (wte.weight, h.0.attn.c_attn.weight ...) and
// start as there: N(0, 0.02^2), the two projections that end in the residual sum N(0, 0.02^2 / (2
// depth)), biases 0. Files hold the layers' weights as the published files do, [inputs, outputs].

#include "tutti/models/block/model_builder.h"

namespace tutti::models {

struct Gpt2Spec {
  int64_t vocabulary = 50257, context = 1024;  ///< learned positions
  int64_t depth = 12, width = 768, heads = 12;
  int64_t hidden = 0;  ///< width of the MLPs; 0: 4 width
  /// `dropout` applies to the embedding and before each addition to the residual sum,
  /// `attention_dropout` to the weights of attention; published: 0.1 for both.
  float dropout = 0, attention_dropout = 0;
  ops::Mode mode = ops::Mode::train;
};

/// tokens i32 [N, T], T <= context -> logits [N, vocabulary, T]. Throws ConfigError where the sizes
/// do not fit. With `segments`, i32 [N, T] (ops/sequence/attention.h), attention stays in a
/// document.
Value gpt2_logits(Graph& graph, Value tokens, Value segments, DType activations,
                  const Gpt2Spec& spec);

/// Builds with the sizes that ModelSpec gives, and else those of `own`.
void build_gpt2(ModelBuilder& model, const Gpt2Spec& own);

}  // namespace tutti::models
