#pragma once
// A gradient that is applied to other weights than it was taken of, brought there by a guess of its
// change: DC-ASGD (Zheng et al. 2017), which takes lambda g g for the curvature.

#include <cstddef>
#include <span>

namespace tutti {

/// Where the weights of both times lie, in arenas laid out as the gradient's.
struct DelayCompensation {
  float lambda = 0;
  const std::byte* now = nullptr;
  const std::byte* then = nullptr;  ///< when the gradient's were taken
};

/// out = g + lambda g g (now - then). `begin`: where g begins in the arena, in bytes.
void compensate(const DelayCompensation& by, size_t begin, const float* g, std::span<float> out);

}  // namespace tutti
