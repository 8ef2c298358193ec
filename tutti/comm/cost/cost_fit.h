#pragma once
// The network that explains measured times best: latency, bandwidth, and the rates of sums and
// copies, for comm/cost/cost.h.

#include <span>
#include <vector>

#include "tutti/comm/cost/cost.h"

namespace tutti::comm {

/// A collective that was run, and what it took.
struct MeasuredSchedules {
  std::vector<Schedule> schedules;  ///< one a rank, in rank order
  size_t element_bytes = 4;
  size_t accumulator_bytes = 4;
  double seconds = 0;
};

/// The numbers >= 0 for which the sum of (price / measured - 1)^2 is least, as far as a local
/// search finds it. A price is a sum of the numbers, each times what the critical path holds of it:
/// a least-squares problem for one path. Paths change with the numbers, so that is done several
/// times. What was never on a path keeps a start value; a job on one node gets `between` equal to
/// `inside`. `node_of` as Task::node_of.
NetworkCost fit_network(std::span<const MeasuredSchedules> measured, std::span<const int> node_of);

}  // namespace tutti::comm
