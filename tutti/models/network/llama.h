#pragma once
// Llama (Touvron et al. 2023, "LLaMA" and "Llama 2"; with grouped queries also TinyLlama, Llama 3):
// a decoder that predicts the next token.
//
//   x = embed_tokens[token]
//   n = input_layernorm(x)                                                 RMS norms
//   x = x + o_proj(attention(rotated q_proj(n), rotated k_proj(n), v_proj(n)))
//   n = post_attention_layernorm(x)
//   x = x + down_proj(silu(gate_proj(n)) up_proj(n))                       `depth` times
//   logits = lm_head norm(x)
//
// No layer has a bias. Parameters have the names of the published safetensors
// (model.layers.0.self_attn.q_proj.weight ...), whose heads keep the two axes of a plane half a
// head apart (ops/sequence/waves.h). They start as N(0, 0.02^2).

#include "tutti/models/block/model_builder.h"

namespace tutti::models {

/// The defaults are Llama 2's 7B.
struct LlamaSpec {
  int64_t vocabulary = 32000, depth = 32, width = 4096, heads = 32;
  int64_t key_heads = 0;  ///< 0: `heads`
  int64_t hidden = 0;     ///< 0: 8/3 width, up to a multiple of 256
  double base = 10000;    ///< base of the rotation
  bool tied = false;      ///< logits use the weights of the tokens: there is no lm_head
};

/// tokens i32 [N, T] -> logits [N, vocabulary, T]. Throws ConfigError where the sizes do not fit.
/// With `segments`, i32 [N, T] (ops/sequence/attention.h), attention stays in a document; positions
/// are counted in the window.
Value llama_logits(Graph& graph, Value tokens, Value segments, DType activations,
                   const LlamaSpec& spec);

/// Builds with the sizes that ModelSpec gives, and else those of `own`.
void build_llama(ModelBuilder& model, const LlamaSpec& own);

}  // namespace tutti::models
