#pragma once
// Less memory for more arithmetic: results that are not kept until they are read last, but computed
// again (Chen et al. 2016, "Training Deep Nets with Sublinear Memory Cost"). What is computed again
// is a part of a band, just before the first band that needs it: with the kernels, tiles and places
// of the first time, so that nothing that is read has other bits. Bands themselves stay as they
// are.
//
// Which results: at the moment of the peak one after the other of those that are kept over it, of
// all that can be had again the one with the least cost for each byte (the cost view is that of
// Checkmate, Jain et al. 2020; theirs is the optimum of an integer program, this is greedy). The
// cost are operations, and those that the time of moving bytes is worth. What bands leave to later
// ones is computed again once; what stays in its band, once for each part of the band that needs it
// and is run again, so that a pass may cost more than one forward pass besides: the cost counts it.
// Not to be had again: what others send, sums over the batch, what changes what persists (running
// statistics) or depends on it, and outputs.

#include <vector>

#include "tutti/plan/bands.h"
#include "tutti/plan/plan.h"

namespace tutti {

struct BandsAgain {
  std::vector<BandAgain> bands;  ///< for with_bands_again()
  int results = 0;               ///< that they make
  double flop = 0;               ///< of them
};

/// So many that results fit into an arena of `limit` bytes, or, where that cannot be, into one as
/// small as was found. `schedule` has no repetitions. Reads graph, descs and the places of
/// variables.
BandsAgain recompute_results(const Plan& plan, const Schedule& schedule, size_t limit);

}  // namespace tutti
