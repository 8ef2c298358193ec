#pragma once
// Lists the exchanges of a plan: the graph's communication nodes with the places that they read and
// write, and the buckets of gradients that are summed.

#include <vector>

#include "tutti/plan/bands.h"
#include "tutti/plan/plan.h"

namespace tutti::plan {

/// Exchanges are named by their index in `all`: first those of the pass and its bands, then
/// those of the update, in the order of the graph.
struct ExchangeList {
  std::vector<PlanExchange> all;
  std::vector<PlanBucket> buckets;
  std::vector<std::vector<int>> waits, starts;  ///< by band
  std::vector<std::vector<bool>> early;         ///< by band: PlanBand::early
  std::vector<int> begins, waits_at_end;
  int turning = 0;  ///< Plan::turning
};

/// Reads graph, descs, places and inputs.
ExchangeList list_exchanges(const Plan& plan, const Schedule& schedule);

/// Returns the bucket that holds the value at `offset` in the arena of gradients or parameters; -1:
/// none does.
int bucket_at(const std::vector<PlanBucket>& buckets, size_t offset);

}  // namespace tutti::plan
