#pragma once
// Forms that replace the ReLUs of a forward graph, leaky ones included, to distinguish their flips
// from faults. A ReLU is a comparison: where its argument is within rounding of 0, another order of
// summation takes the other branch, and gradients change by far more than rounding. Which positions
// those are depends on the processor. A maximum over a window is such a comparison, too.

#include <vector>

#include "tutti/ops/fusion/fuse.h"

namespace tutti::test {

enum class Rectifiers {
  relu,  ///< unchanged
  seen,  ///< unchanged, and copies of their results are outputs; maxima are averages
  held,  ///< an input of zeros and ones decides each: the same network, without a comparison
  gelu,  ///< GELU instead, which has no kink; maxima are averages
};
const char* name_of(Rectifiers rectifiers);

/// How far flips may move a gradient of a small network, in the relative 2-norm. One flip moves the
/// gradient of a layer of n positions by about 1/sqrt(n), and is as likely as its argument is
/// within rounding of 0: n * 1e-5 behind a batch norm. A layer that one flip moves by more than
/// 0.25 has fewer than 16 positions, so that happens on one processor of some thousand. Such a
/// bound hides faults that move gradients by less: find those by a close comparison of the same
/// steps with `held`, `gelu` or another smooth network.
constexpr double kFlipped = 0.25;

struct Rectified {
  ops::Rewritten graph;
  std::vector<graph::Value>
      masks;  ///< for each ReLU in order: its result (seen), or the input (held)
};

/// Rewrites `graph`, a forward graph before any other rewrite.
Rectified rectify(const graph::Graph& graph, Rectifiers rectifiers);

}  // namespace tutti::test
