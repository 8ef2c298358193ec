#pragma once
// Translator: a trained model of pairs as a function from sources to what is made from them.

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "tutti/backend/backend.h"
#include "tutti/models/block/model.h"
#include "tutti/train/infer/beam_search.h"
#include "tutti/train/infer/token_steps.h"

namespace tutti {

class Translator {
 public:
  /// `model`: reads a source, [S] a sample, and the field tokens, [T], which begins with the end
  /// token; `sources` are read side by side. Of `beam` the longest is T whatever it says.
  /// ConfigError where the model does not write one sequence from another. The backend must outlive
  /// it.
  Translator(const ModelSpec& model, int64_t sources, const BeamSettings& beam,
             const Backend& backend, PlanOptions options);

  const Variables& variables() const { return plan_.variables; }
  int64_t vocabulary() const { return steps_->vocabulary(); }
  int64_t source_window() const { return steps_->source_window(); }
  /// Weights of these variables, which every later call uses.
  void bind(const ReplicaState& model) { steps_->bind(model); }
  /// Of each source, at most source_window() tokens, the best sequence that the search finds. What
  /// is found does not depend on the others, up to rounding.
  std::vector<WrittenSequence> write(std::span<const std::vector<int32_t>> sources);

 private:
  void write_some(std::span<const std::vector<int32_t>> sources,
                  std::vector<WrittenSequence>& written);

  Plan plan_;  // of a whole pass, which says where weights lie
  TokenRows rows_;
  BeamSettings beam_;
  std::unique_ptr<TokenSteps> steps_;
};

}  // namespace tutti
