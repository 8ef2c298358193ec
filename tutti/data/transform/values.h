#pragma once
// ValueFunction: the value steps of a field, with the numbers they work with.

#include <span>
#include <string>
#include <vector>

#include "tutti/data/transform/steps.h"

namespace tutti::data {

/// From where the way back counts: from the zero of the data, or from the number that a learned
/// zero stands for, which keeps the digits of differences.
enum class Origin { of_data, learned_zero };

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
  /// Changes x: all of one channel, or, `along`, of channels `channel`, `channel` + 1 ... In double
  /// numbers where the stored ones have more digits than f32.
  void apply(std::span<float> x, int64_t channel, bool along) const;
  void apply(std::span<double> x, int64_t channel, bool along) const;

  /// The way back: numbers of one sample, row-major as the field leaves its placement, become
  /// numbers in the units of the field. A clip has no way back and leaves them as they are;
  /// after a multiplication by 0 nothing has one, and none is changed.
  void invert(std::span<float> sample, Origin origin = Origin::of_data) const;
  /// Whether invert() changes anything; whether a step multiplies by 0.
  bool has_inverse() const;
  bool forgets() const;
  /// The steps that invert() takes back and those that it does not, as words of data.transforms:
  /// "multiply 8, normalise mean 1.5 std 2"; numbers of more than four channels are left out.
  std::string undone() const;
  std::string kept() const;

 private:
  template <class T>
  void apply_to(std::span<T> x, int64_t channel, bool along) const;
  double way_back(double y, size_t channel) const;
  std::vector<ValueStep> steps_;
  int64_t channels_ = 1;
  bool by_channel_ = false;
};

}  // namespace tutti::data
