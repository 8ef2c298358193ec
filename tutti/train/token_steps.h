#pragma once
// TokenSteps: a language model a token at a time. Keys and values of the tokens before are kept, so
// layers, embedding and logits cost one position's work and not a window's. Attention does not:
// each step puts the new key behind those that are kept and lays out all of the window's anew.

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "tutti/backend/backend.h"
#include "tutti/models/model.h"
#include "tutti/plan/executor.h"

namespace tutti {

class TokenSteps {
 public:
  /// Of a model of one sequence of tokens, with a batch of 1 and a window of spec.input[0], whose
  /// weights lie as `variables` say. Null where what a token becomes does not follow from kept keys
  /// and values: attention that is not causal or is masked, inputs besides.
  static std::unique_ptr<TokenSteps> of(const ModelSpec& spec, const Backend& backend,
                                        PlanOptions options, const Variables& variables);

  void bind(const ReplicaState& model);
  /// Forgets all tokens.
  void begin() { count_ = 0; }
  int64_t count() const { return count_; }  ///< tokens since begin()
  int64_t window() const { return window_; }
  /// Logits of the token behind this one; CHECKs that the window has room for it. Valid until the
  /// next call.
  std::span<const float> step(int32_t token);

 private:
  struct Kept {
    Value input, made;  // [1, channels, window - 1], and of this token [1, channels, 1]
    int64_t channels = 0;
    std::vector<std::byte> memory{};
  };
  TokenSteps() = default;

  int64_t window_ = 0, count_ = 0, vocabulary_ = 0;
  size_t element_ = 4;  // bytes of a kept number
  Plan plan_;
  Value token_, position_, seen_, logits_;
  int32_t bound_token_ = 0, bound_position_ = 0;
  std::vector<int32_t> bound_seen_;
  std::vector<Kept> layers_;
  std::unique_ptr<Executor> executor_;
};

}  // namespace tutti
