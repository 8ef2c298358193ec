#pragma once
// Cost: the time that a schedule takes on a described network. It plays the schedules that are run
// on a clock.
//
// The model (Hockney's, with links that are busy): a message of b bytes leaves when its sender's
// link is free, keeps it busy for b * seconds_per_byte, and has arrived after `latency` and the
// same time on the receiver's link, when that is free. A rank does its local steps when its round's
// messages have arrived, and posts the next round when they have also left. Ranks of one node
// communicate over `inside`, others over `between`; a rank has one link of each kind and direction.

#include <span>

#include "tutti/comm/schedule/schedule.h"

namespace tutti::comm {

struct LinkCost {
  double latency = 0;  ///< seconds
  double seconds_per_byte = 0;
};

struct NetworkCost {
  LinkCost inside;
  LinkCost between;
  double seconds_per_reduced_byte = 0;  ///< bytes of the result
  double seconds_per_copied_byte = 0;
};

/// Returns the seconds from the moment when all ranks begin until the last one is done.
/// `schedules`: one for each rank, in rank order. `node_of` as Task::node_of; empty: one node.
/// Throws CommError when the schedules do not fit each other.
double price(std::span<const Schedule> schedules, const NetworkCost& network,
             std::span<const int> node_of, size_t element_bytes, size_t accumulator_bytes);

}  // namespace tutti::comm
