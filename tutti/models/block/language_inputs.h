#pragma once
// The inputs and targets of decoders: the fields of data.dataset = "text" and "tokens".

#include "tutti/models/block/model_builder.h"

namespace tutti::models {

struct LanguageInputs {
  Value tokens;           ///< i32 [N, T]
  ops::TokenLabels next;  ///< the token after each
  Value segments;         ///< i32 [N, T], the number of each token's document; invalid: documents
                          ///< are not told apart
};

/// Throws ConfigError where data.input names other fields than tokens, optionally followed by
/// segments.
LanguageInputs language_inputs(ModelBuilder& model);

/// Adds causal attention of a decoder to the sequences `in`; `segments`, where valid, is its mask.
Value causal_attention(Graph& graph, const std::string& name, std::vector<Value> in,
                       ops::AttentionAttributes attributes, Value segments);

}  // namespace tutti::models
