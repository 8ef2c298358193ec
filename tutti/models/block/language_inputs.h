#pragma once
// What decoders read and learn: the fields of data.dataset = "text" and "tokens".

#include "tutti/models/block/model_builder.h"

namespace tutti {

struct LanguageInputs {
  Value tokens;      ///< i32 [N, T]
  TokenLabels next;  ///< the token behind each
  Value segments;    ///< i32 [N, T], the number of each token's document; invalid: not told apart
};

/// ConfigError where data.input names other fields than tokens, and segments behind it.
LanguageInputs language_inputs(ModelBuilder& model);

/// Causal attention of a decoder. Of the sequences `in`, with the mask behind them where there is
/// one.
Value causal_attention(Graph& graph, const std::string& name, std::vector<Value> in,
                       AttentionAttributes attributes, Value segments);

}  // namespace tutti
