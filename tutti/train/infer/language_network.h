#pragma once
// LanguageNetwork: a trained language model as a function from tokens to what may come next.

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "tutti/backend/backend.h"
#include "tutti/device/cpu/buffer.h"
#include "tutti/models/block/model.h"
#include "tutti/plan/executor.h"
#include "tutti/train/infer/token_steps.h"

namespace tutti {

class LanguageNetwork {
 public:
  /// `model`: with one input of tokens, [T] a sample, of which it is given the first few: what
  /// stands behind them must not matter, as in a causal model. The batch is 1. ConfigError where
  /// the model predicts no tokens. The backend must outlive it.
  LanguageNetwork(const ModelSpec& model, const Backend& backend, const PlanOptions& options);

  const Plan& plan() const { return plan_; }
  int64_t window() const { return tokens_.size; }  ///< T
  int64_t vocabulary() const { return vocabulary_; }
  /// Weights of this plan's variables, which every later call uses.
  void bind(const ReplicaState& model);
  /// Logits of the token behind `tokens`, 1 to T of them; valid until the next call. Where `tokens`
  /// go on with those of the last call, only what is new is computed, with the keys and values that
  /// were kept; up to rounding the numbers are those of a pass over the window.
  std::span<const float> logits(std::span<const int32_t> tokens);
  /// The same by a whole pass.
  std::span<const float> whole_pass(std::span<const int32_t> tokens);
  bool keeps() const { return steps_ != nullptr; }  ///< keys and values

 private:
  struct Bound {
    Value value;
    int64_t size = 0;
    std::vector<int32_t> numbers{};
  };

  Plan plan_;
  Bound tokens_, labels_;
  Value logits_;
  int64_t vocabulary_ = 0;
  std::unique_ptr<Executor> executor_;
  std::unique_ptr<TokenSteps> steps_;
  std::vector<int32_t> stepped_;  // the tokens that `steps_` has seen
  std::vector<float> plain_, last_;
};

}  // namespace tutti
