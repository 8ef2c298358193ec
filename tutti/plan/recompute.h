#pragma once
// Trades memory for arithmetic: results are not kept until their last reader, but computed again
// (Chen et al. 2016, "Training Deep Nets with Sublinear Memory Cost"). The repeated part of a band
// runs just before the first band that needs it, with the kernels, tiles and places of the first
// time, so that every value read has the same bits. The bands themselves stay as they are.
//
// Which results: at the moment of the peak, results that are kept over it are dropped one after the
// other, always the recomputable one with the least cost per byte (the cost view is that of
// Checkmate, Jain et al. 2020; theirs is the optimum of an integer program, this is greedy). The
// cost counts operations, and the operations that the time of moving bytes is worth. Results that
// bands leave to later ones are computed again once. Results that stay in their band are computed
// again for each repeated part of the band that needs them, so a pass may cost more than one
// additional forward pass; the cost counts that. Not recomputable are: values received from others,
// sums over the batch, nodes that change persistent values (running statistics) or depend on those,
// and outputs.

#include <vector>

#include "tutti/plan/bands.h"
#include "tutti/plan/plan.h"

namespace tutti::plan {

struct BandsAgain {
  std::vector<BandAgain> bands;  ///< for with_bands_again()
  int results = 0;               ///< number of results that they compute
  double flop = 0;               ///< arithmetic of the repeated nodes
};

/// Repeats enough that the results fit into an arena of `limit` bytes or, if that is impossible,
/// into the smallest arena found. `schedule` has no repetitions. Reads graph, descs and the
/// places of variables.
BandsAgain recompute_results(const Plan& plan, const Schedule& schedule, size_t limit);

}  // namespace tutti::plan
