#pragma once
// Chooses the next token of a language model's text.

#include <cstdint>
#include <span>

namespace tutti::train {

struct TokenChoice {
  double temperature = 1;  ///< logits are divided by it; 0: the most likely token
  int64_t top_k = 0;       ///< only this many most likely tokens; 0: all
  /// Keeps, in the order of their probabilities, only as many as together have this share.
  double top_p = 1;
};

/// Draws a token from the softmax of the logits; `uniform` in [0, 1) decides, so equal arguments
/// give equal tokens. Among equally likely tokens the first comes first. Tokens whose logit is NaN
/// are never chosen; CHECKs that there is another.
int32_t choose_token(std::span<const float> logits, const TokenChoice& choice, double uniform);

}  // namespace tutti::train
