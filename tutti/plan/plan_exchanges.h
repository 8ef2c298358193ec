#pragma once
// What ranks exchange, by the plan: the graph's nodes of communication with the places that they
// read and leave, and the buckets of gradients that are summed.

#include <vector>

#include "tutti/plan/bands.h"
#include "tutti/plan/plan.h"

namespace tutti {

/// Exchanges are named by their index in `all`: first those that the pass and its bands begin, then
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

/// The bucket that holds what begins at `offset` in the arena of gradients, or of parameters; -1:
/// none does.
int bucket_at(const std::vector<PlanBucket>& buckets, size_t offset);

}  // namespace tutti
