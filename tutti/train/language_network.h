#pragma once
// LanguageNetwork: a trained language model as a function from tokens to what may come next.

#include <cstdint>
#include <span>
#include <vector>

#include "tutti/backend/backend.h"
#include "tutti/device/cpu/buffer.h"
#include "tutti/models/model.h"
#include "tutti/plan/executor.h"

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
  /// Logits of the token behind `tokens`, 1 to T of them; valid until the next call.
  std::span<const float> logits(std::span<const int32_t> tokens);

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
  std::vector<float> plain_, last_;
};

}  // namespace tutti
