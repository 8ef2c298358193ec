#pragma once
// An encoder of scientific sequences: data of sensors, spectra, trajectories or tokens, read as a
// whole.
//
//   x = embed.proj(signal)        a convolution, `piece` samples wide and as far apart
//     | embedding[token]          for tokens
//   x = x + position              sinusoids (ops/sequence/waves.h): they suit any length
//   x = norm(layers of encoder.h)
//   for a whole sequence          y = head(attention(pool.query, pool.kv(x))), one learned query,
//                                 which weighs positions (Lee et al. 2019, Touvron et al. 2021)
//   at each sample                y = head(x), for pieces a transposed convolution
//
// Positions whose number in the field `padding` is below 0 are no keys, so sequences may be shorter
// than the field. Without such a field, tokens below 0 are padding.

#include "tutti/models/block/encoder.h"

namespace tutti::models {

inline constexpr const char* kPaddingField = "padding";
inline constexpr EncoderSpec kSequenceEncoder{.depth = 4, .width = 128, .heads = 4};

enum class SequenceKind : uint8_t { signals, tokens };

/// Reads the first field, [C, T] of signals or [T] of tokens, and padding [positions] if there is
/// such a field. Predicts a class or numbers for the sequence or, where the task is segment or the
/// target is [K, T], for each sample. Throws ConfigError where the sizes do not fit.
void build_sequence_encoder(ModelBuilder& model, SequenceKind kind);

}  // namespace tutti::models
