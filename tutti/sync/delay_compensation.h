#pragma once
// Corrects a gradient that is applied to weights other than those it was computed with, by an
// estimate of its change: DC-ASGD (Zheng et al. 2017), which uses lambda g g as the curvature.

#include <cstddef>
#include <span>

namespace tutti::sync {

/// Addresses of the weights at both times, in arenas laid out like the gradient's.
struct DelayCompensation {
  float lambda = 0;
  const std::byte* now = nullptr;
  const std::byte* then = nullptr;  ///< the weights with which the gradient was computed
};

/// Computes out = g + lambda g g (now - then). `begin` is the offset of g in the arena, in bytes.
void compensate(const DelayCompensation& by, size_t begin, const float* g, std::span<float> out);

}  // namespace tutti::sync
