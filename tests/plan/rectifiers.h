#pragma once
// What stands for the ReLUs of a forward graph. A ReLU is a comparison: where its argument is
// within rounding of 0, another order of summation takes the other branch, and gradients move by
// far more than rounding. These forms tell such flips from faults.

#include <vector>

#include "tutti/ops/fuse.h"

namespace tutti::test {

enum class Rectifiers {
  relu,  ///< as they are
  seen,  ///< as they are, and copies of their results are outputs
  held,  ///< each multiplies by an input of zeros and ones: the same network, decided beforehand
  gelu,  ///< GELU in their place, which has no kink
};
const char* name_of(Rectifiers rectifiers);

/// How far flips may move a gradient of a small network, in the relative 2-norm: 2e-2 was seen.
/// What a test allows with `relu` must be so much, and with `held` it checks the same closely.
constexpr double kFlipped = 5e-2;

struct Rectified {
  Rewritten graph;
  std::vector<Value> masks;  ///< of each ReLU in order: its result (seen), or the input (held)
};

/// `graph` is a forward graph before any other rewrite.
Rectified rectify(const Graph& graph, Rectifiers rectifiers);

}  // namespace tutti::test
