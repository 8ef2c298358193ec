#pragma once
// From measured times to the lines of a selection table.

#include <span>
#include <string>
#include <vector>

#include "tutti/comm/schedule/selection.h"

namespace tutti {

/// What an algorithm took.
struct AlgorithmTime {
  comm::Collective kind = comm::Collective::allreduce;
  size_t bytes = 0;  ///< of the long vector
  std::string algorithm;
  bool reproducible = false;  ///< it adds in the order of comm/schedule/tree.h, or adds nothing
  double seconds = 0;
};

/// The fastest algorithm of each collective and size, for calls that need the order of the tree
/// and, where other orders were measured too, for those that do not. An algorithm keeps its place
/// at the next size unless another is faster by more than `tie` of its time: differences smaller
/// than the noise would only make the table long. Between two sizes of different winners the bound
/// is their geometric mean; the largest size's winner is taken for all that is larger. `times`: in
/// any order; an algorithm may be missing at some sizes.
std::vector<comm::Selection::Line> fastest_lines(std::span<const AlgorithmTime> times, int ranks,
                                                 bool one_node, double tie = 0.03);

}  // namespace tutti
