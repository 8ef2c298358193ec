#pragma once
// TokenSteps: a language model a token at a time. Keys and values of the tokens before are kept, so
// layers, embedding and logits cost one position's work and not a window's. Attention does not:
// each step puts the new key behind those that are kept and lays out all of the window's anew. What
// follows from other inputs than the tokens, such as the encoder of a source, is computed once,
// before the first token.

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "tutti/backend/backend.h"
#include "tutti/models/block/model.h"
#include "tutti/plan/executor.h"

namespace tutti {

/// Sequences that are written side by side.
struct TokenRows {
  int64_t sources = 1;  ///< what the other inputs are read for
  int64_t copies = 1;   ///< sequences of each source, one after the other
  int64_t count() const { return sources * copies; }
};

class TokenSteps {
 public:
  /// Of a model whose field `tokens` has a window of [T] a sample, and whose weights lie as
  /// `variables` say. Null where what a token becomes does not follow from kept keys and values:
  /// attention of tokens among themselves that is not causal or is masked.
  static std::unique_ptr<TokenSteps> of(const ModelSpec& spec, const std::string& tokens,
                                        const TokenRows& rows, const Backend& backend,
                                        PlanOptions options, const Variables& variables);
  ~TokenSteps();

  void bind(const ReplicaState& model);
  /// Forgets all tokens.
  void begin() { count_ = 0; }
  /// The same, and reads the one other input, [sources, S].
  void begin(std::span<const int32_t> source);
  int64_t count() const { return count_; }  ///< tokens of a sequence since begin()
  int64_t window() const { return window_; }
  int64_t vocabulary() const { return vocabulary_; }
  int64_t source_window() const { return source_window_; }  ///< S; 0: nothing but tokens is read
  /// Logits [count of rows, vocabulary] of the tokens behind these, one a sequence; CHECKs that the
  /// window has room for them. Valid until the next call.
  std::span<const float> step(std::span<const int32_t> tokens);
  /// Sequence i goes on from what sequence from[i] was; both of one source.
  void keep(std::span<const int32_t> from);

 private:
  struct Kept;
  struct Given;
  struct Front;
  TokenSteps();
  void give(Value before, Value input);
  void take_made();

  TokenRows rows_;
  int64_t window_ = 0, source_window_ = 0, count_ = 0, vocabulary_ = 0;
  Plan plan_;
  Value token_, position_, seen_, logits_;
  std::vector<int32_t> bound_tokens_, bound_positions_, bound_seen_;
  std::vector<Kept> layers_;
  std::vector<Given> given_;
  std::unique_ptr<Front> front_;  // null: there is nothing to compute before
  std::unique_ptr<Executor> executor_;
};

}  // namespace tutti
