#pragma once
// LanguageNetwork: a trained language model as a function from tokens to logits of the next token.

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "tutti/backend/backend.h"
#include "tutti/device/cpu/buffer.h"
#include "tutti/models/block/model.h"
#include "tutti/plan/run/executor.h"
#include "tutti/train/infer/token_steps.h"

namespace tutti::train {

class LanguageNetwork {
 public:
  /// `model` has one input of tokens, [T] per sample, of which the first few are given: later
  /// positions must not affect them, as in a causal model. The batch is 1. Throws ConfigError if
  /// the model predicts no tokens. The backend must outlive this object.
  LanguageNetwork(const models::ModelSpec& model, const backend::Backend& backend,
                  const plan::PlanOptions& options);

  const plan::Plan& plan() const { return plan_; }
  int64_t window() const { return tokens_.size; }  ///< T
  int64_t vocabulary() const { return vocabulary_; }
  /// Binds the weights of this plan's variables, which every later call uses.
  void bind(const plan::ReplicaState& model);
  /// Returns the logits of the token after `tokens`, 1 to T of them; valid until the next call. If
  /// `tokens` continues the last call's tokens, only new tokens are computed, with the stored keys
  /// and values; the numbers equal a pass over the window up to rounding.
  std::span<const float> logits(std::span<const int32_t> tokens);
  /// Computes the same by a whole pass.
  std::span<const float> whole_pass(std::span<const int32_t> tokens);
  bool keeps() const { return steps_ != nullptr; }  ///< whether keys and values are stored

 private:
  struct Bound {
    graph::Value value;
    int64_t size = 0;
    std::vector<int32_t> numbers{};
  };

  plan::Plan plan_;
  Bound tokens_, labels_;
  graph::Value logits_;
  int64_t vocabulary_ = 0;
  std::unique_ptr<plan::Executor> executor_;
  std::unique_ptr<TokenSteps> steps_;
  std::vector<int32_t> stepped_;  // tokens that `steps_` has processed
  std::vector<float> plain_, last_;
};

}  // namespace tutti::train
