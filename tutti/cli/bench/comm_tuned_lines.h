#pragma once
// Makes the lines of a selection table from measured times.

#include <span>
#include <string>
#include <vector>

#include "tutti/comm/schedule/selection.h"

namespace tutti {

/// The time of one algorithm.
struct AlgorithmTime {
  comm::Collective kind = comm::Collective::allreduce;
  size_t bytes = 0;  ///< size of the long vector
  std::string algorithm;
  bool reproducible = false;  ///< it adds in the order of comm/schedule/tree.h, or adds nothing
  double seconds = 0;
};

/// Returns the fastest algorithm of each collective and size, for calls that need the order of the
/// tree and, where other orders were measured too, for calls that do not. An algorithm is kept at
/// the next size unless another is faster by more than `tie` of its time: differences smaller than
/// the noise would only make the table long. Between two sizes with different winners the bound is
/// their geometric mean; the largest size's winner is taken for all larger sizes. `times`: in any
/// order; an algorithm may be missing at some sizes.
std::vector<comm::Selection::Line> fastest_lines(std::span<const AlgorithmTime> times, int ranks,
                                                 bool one_node, double tie = 0.03);

}  // namespace tutti
