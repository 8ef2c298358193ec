#pragma once
// Fits the network to measured times: latency, bandwidth, and the rates of sums and copies, for
// comm/cost/cost.h.

#include <span>
#include <vector>

#include "tutti/comm/cost/cost.h"

namespace tutti::comm {

/// A collective that was run, and its time.
struct MeasuredSchedules {
  std::vector<Schedule> schedules;  ///< one for each rank, in rank order
  size_t element_bytes = 4;
  size_t accumulator_bytes = 4;
  double seconds = 0;
};

/// Returns the numbers >= 0 that minimise the sum of (price / measured - 1)^2, as far as a local
/// search finds them. A price is a sum of the numbers, each times its amount on the critical path:
/// a least-squares problem for one path. Paths change with the numbers, so this is repeated several
/// times. A number that was never on a path keeps a start value; a job on one node gets `between`
/// equal to `inside`. `node_of` as Task::node_of.
NetworkCost fit_network(std::span<const MeasuredSchedules> measured, std::span<const int> node_of);

}  // namespace tutti::comm
