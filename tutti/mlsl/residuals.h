#pragma once
// Residuals: the quantisation errors of one parameter set's gradients, by the buffer of the
// gradient.

#include <cstddef>
#include <span>
#include <vector>

namespace tutti::mlsl {

/// Bounded for any number of buffer addresses: each of the kMostBuffers used last has its own
/// residual. A further buffer takes over the residual of the one unused for longest, because the
/// error belongs to the parameter set's gradient and may be added to a later one. So a program that
/// takes a fresh buffer every step loses nothing either.
class Residuals {
 public:
  /// For gradients of `count` floats.
  explicit Residuals(size_t count) : count_(count) {}
  /// Returns the residual for the gradient that is now in `buffer`: zeros for the first ones. Valid
  /// until the next call.
  std::span<float> of(const float* buffer);
  size_t bytes() const { return kept_.size() * count_ * sizeof(float); }

  /// Programs often alternate between two buffers of a set; more than this are not known.
  static constexpr size_t kMostBuffers = 4;

 private:
  struct Kept {
    const float* buffer;
    std::vector<float> lost;
  };
  size_t count_;
  std::vector<Kept> kept_;  // the buffer used last is first
};

}  // namespace tutti::mlsl
