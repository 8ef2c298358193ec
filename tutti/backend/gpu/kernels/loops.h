#pragma once
// Nested loops over elements of tensors, as a part of kernels' arguments.

#include <cstdint>

namespace tutti::backend {

constexpr int kMostLoops = 6;

/// A number that kernels divide by, more than 0. Division of 64 bits is a call on a GPU, so they
/// multiply by its inverse instead.
struct FastDivisor {
  int64_t value;
  double inverse;
};

/// Loops over elements of K operands, the innermost last. Their elements are numbered in this
/// order.
template <int K>
struct Loops {
  int32_t depth;                  ///< at least 1
  FastDivisor count[kMostLoops];  ///< by loop
  int64_t step[K][kMostLoops];    ///< by operand and loop: the distance of neighbours, in elements
};

}  // namespace tutti::backend
