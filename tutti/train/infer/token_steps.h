#pragma once
// TokenSteps: runs a language model one token at a time. Keys and values of earlier tokens are
// stored, so that layers, embedding and logits cost one position's work and not a window's.
// Attention does not gain: each step appends the new key to the stored ones and lays out all of the
// window's anew. Values that depend only on other inputs than the tokens, such as the encoder of a
// source, are computed once, before the first token.

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "tutti/backend/backend.h"
#include "tutti/models/block/model.h"
#include "tutti/plan/run/executor.h"

namespace tutti::train {

/// Sequences that are written in parallel.
struct TokenRows {
  int64_t sources = 1;  ///< sources given by the other inputs
  int64_t copies = 1;   ///< sequences per source, adjacent
  int64_t count() const { return sources * copies; }
};

class TokenSteps {
 public:
  /// Makes the steps for a model whose field `tokens` has a window of [T] per sample, and whose
  /// weights are laid out as in `variables`. Returns null where a token's result does not follow
  /// from stored keys and values: attention among tokens that is not causal or is masked.
  static std::unique_ptr<TokenSteps> of(const models::ModelSpec& spec, const std::string& tokens,
                                        const TokenRows& rows, const backend::Backend& backend,
                                        plan::PlanOptions options,
                                        const plan::Variables& variables);
  ~TokenSteps();

  void bind(const plan::ReplicaState& model);
  /// Discards all tokens.
  void begin() { count_ = 0; }
  /// Discards all tokens, and reads the other input, [sources, S].
  void begin(std::span<const int32_t> source);
  int64_t count() const { return count_; }  ///< tokens of a sequence since begin()
  int64_t window() const { return window_; }
  int64_t vocabulary() const { return vocabulary_; }
  int64_t source_window() const { return source_window_; }  ///< S; 0: the model reads only tokens
  /// Returns the logits [count of rows, vocabulary] of the tokens after `tokens`, one per sequence;
  /// CHECKs that the window has space for them. Valid until the next call.
  std::span<const float> step(std::span<const int32_t> tokens);
  /// Continues sequence i from the former sequence from[i]; both must belong to one source.
  void keep(std::span<const int32_t> from);

 private:
  struct Kept;
  struct Given;
  struct Front;
  TokenSteps();
  void give(graph::Value before, graph::Value input);
  void take_made();

  TokenRows rows_;
  int64_t window_ = 0, source_window_ = 0, count_ = 0, vocabulary_ = 0;
  plan::Plan plan_;
  graph::Value token_, position_, seen_, logits_;
  std::vector<int32_t> bound_tokens_, bound_positions_, bound_seen_;
  std::vector<Kept> layers_;
  std::vector<Given> given_;
  std::unique_ptr<Front> front_;  // null: nothing is computed beforehand
  std::unique_ptr<plan::Executor> executor_;
};

}  // namespace tutti::train
