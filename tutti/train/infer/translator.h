#pragma once
// Translator: a trained model of pairs as a function from sources to target sequences.

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "tutti/backend/backend.h"
#include "tutti/models/block/model.h"
#include "tutti/train/infer/beam_search.h"
#include "tutti/train/infer/token_steps.h"

namespace tutti::train {

class Translator {
 public:
  /// `model` reads a source, [S] per sample, and the field tokens, [T], which begins with the end
  /// token; `sources` of them are read in parallel. The search's longest is always T, whatever
  /// `beam` holds. Throws ConfigError if the model does not write one sequence from another. The
  /// backend must outlive this object.
  Translator(const models::ModelSpec& model, int64_t sources, const BeamSettings& beam,
             const backend::Backend& backend, plan::PlanOptions options);

  const plan::Variables& variables() const { return plan_.variables; }
  int64_t vocabulary() const { return steps_->vocabulary(); }
  int64_t source_window() const { return steps_->source_window(); }
  /// Binds the weights of these variables, which every later call uses.
  void bind(const plan::ReplicaState& model) { steps_->bind(model); }
  /// Returns, for each source of at most source_window() tokens, the best sequence that the search
  /// finds. A result does not depend on the other sources, up to rounding.
  std::vector<WrittenSequence> write(std::span<const std::vector<int32_t>> sources);

 private:
  void write_some(std::span<const std::vector<int32_t>> sources,
                  std::vector<WrittenSequence>& written);

  plan::Plan plan_;  // for a whole pass; defines the layout of weights
  TokenRows rows_;
  BeamSettings beam_;
  std::unique_ptr<TokenSteps> steps_;
};

}  // namespace tutti::train
