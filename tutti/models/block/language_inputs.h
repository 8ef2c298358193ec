#pragma once
// The inputs and targets of decoders: the fields of data.dataset = "text" and "tokens".

#include "tutti/models/block/model_builder.h"

namespace tutti::models {

struct LanguageInputs {
  graph::Value tokens;    ///< i32 [N, T]
  ops::TokenLabels next;  ///< the token after each
  graph::Value segments;  ///< i32 [N, T], the number of each token's document; invalid: documents
                          ///< are not told apart
};

/// Throws ConfigError where data.input names other fields than tokens, optionally followed by
/// segments.
LanguageInputs language_inputs(ModelBuilder& model);

/// Adds causal attention of a decoder to the sequences `in`; `segments`, where valid, is its mask.
graph::Value causal_attention(graph::Graph& graph, const std::string& name,
                              std::vector<graph::Value> in, ops::AttentionAttributes attributes,
                              graph::Value segments);

}  // namespace tutti::models
