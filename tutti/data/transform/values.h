#pragma once
// A ValueFunction applies the value steps of a field, with their numbers.

#include <span>
#include <string>
#include <vector>

#include "tutti/data/transform/steps.h"

namespace tutti::data {

/// Origin of inverted numbers: the zero of the data, or the number that a learned zero stands for,
/// which keeps the digits of differences.
enum class Origin { of_data, learned_zero };

/// Immutable; safe from any thread.
class ValueFunction {
 public:
  /// `channels`: extent of the placed field's first axis, 1 for a number. Uses the field's own
  /// statistics if a step has no numbers. ConfigError naming the field if these are unknown, or
  /// there is neither one number nor one per channel.
  ValueFunction(const Field& stored, int64_t channels, std::vector<ValueStep> steps);

  bool is_identity() const { return steps_.empty(); }
  /// Says whether channels differ.
  bool by_channel() const { return by_channel_; }
  /// Changes x: all of one channel, or, with `along`, of channels `channel`, `channel` + 1 ... The
  /// double version is for stored numbers with more digits than f32.
  void apply(std::span<float> x, int64_t channel, bool along) const;
  void apply(std::span<double> x, int64_t channel, bool along) const;

  /// Inverts the steps: numbers of one sample, row-major after placement, return to the units of
  /// the field. A clip cannot be inverted and is skipped; with a multiplication by 0 nothing can,
  /// and no number is changed.
  void invert(std::span<float> sample, Origin origin = Origin::of_data) const;
  /// Say whether invert() changes anything, and whether a step multiplies by 0.
  bool has_inverse() const;
  bool forgets() const;
  /// Return the steps that invert() undoes, and those that it does not, as words of
  /// data.transforms: "multiply 8, normalise mean 1.5 std 2"; numbers of more than four channels
  /// are left out.
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
