#pragma once
// ValueFunction: the value steps of a field, with the numbers they work with.

#include <span>
#include <vector>

#include "tutti/data/transform/steps.h"

namespace tutti::data {

/// Immutable; safe from any thread.
class ValueFunction {
 public:
  /// `channels`: extent of the placed field's first axis, 1 of a number. Takes the field's own
  /// statistics where a step has no numbers. ConfigError naming the field where those are not
  /// known, or numbers are neither one nor one a channel.
  ValueFunction(const Field& stored, int64_t channels, std::vector<ValueStep> steps);

  bool is_identity() const { return steps_.empty(); }
  /// Whether channels differ.
  bool by_channel() const { return by_channel_; }
  /// Changes x: all of one channel, or, `along`, of channels `channel`, `channel` + 1 ...
  void apply(std::span<float> x, int64_t channel, bool along) const;

 private:
  std::vector<ValueStep> steps_;
  bool by_channel_ = false;
};

}  // namespace tutti::data
