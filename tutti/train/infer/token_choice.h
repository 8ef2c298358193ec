#pragma once
// Which token a language model's text goes on with.

#include <cstdint>
#include <span>

namespace tutti {

struct TokenChoice {
  double temperature = 1;  ///< logits are divided by it; 0: the most likely token
  int64_t top_k = 0;       ///< only the so many most likely tokens; 0: all
  /// Of these, in the order of their probabilities, only so many as have this share of it together.
  double top_p = 1;
};

/// A token drawn from the softmax of the logits, of which `uniform` in [0, 1) chooses one: equal
/// arguments, equal token. Of equally likely ones the first comes first. Tokens whose logit is no
/// number are never chosen; CHECKs that one is.
int32_t choose_token(std::span<const float> logits, const TokenChoice& choice, double uniform);

}  // namespace tutti
