#pragma once
// Residuals: what quantising has lost of the gradients of one parameter set, by the buffer that
// they were in.

#include <cstddef>
#include <span>
#include <vector>

namespace tutti::mlsl {

/// Bounded, whatever addresses a program uses: of the kMostBuffers that came last each has its own.
/// One more takes over the residual of the buffer that has not come for longest, because what was
/// lost is of the parameter set's gradient and belongs into a later one of it. So a program that
/// takes a fresh buffer every step, too, loses nothing.
class Residuals {
 public:
  /// Of gradients of `count` floats.
  explicit Residuals(size_t count) : count_(count) {}
  /// Of the gradient that now comes in `buffer`: zeros for the first ones. Valid until the next
  /// call.
  std::span<float> of(const float* buffer);
  size_t bytes() const { return kept_.size() * count_ * sizeof(float); }

  /// A program with two buffers of a set in turns is common; more than this are not known.
  static constexpr size_t kMostBuffers = 4;

 private:
  struct Kept {
    const float* buffer;
    std::vector<float> lost;
  };
  size_t count_;
  std::vector<Kept> kept_;  // the buffer that came last stands first
};

}  // namespace tutti::mlsl
