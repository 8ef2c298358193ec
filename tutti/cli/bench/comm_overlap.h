#pragma once
// Measures how much of a collective's time is hidden behind a computation on the same rank: `tutti
// bench comm --overlap`.

#include "tutti/cli/bench/comm_turns.h"

namespace tutti {

/// Returns (alone + computation - both) / alone, from medians: 1 means that all of the time is
/// hidden. The computation takes as long as the collective does alone, fits in registers, and calls
/// progress() every millisecond, as kernels of a step would. Collective.
double hidden_part(comm::Communicator& communicator, comm::Operation& operation,
                   const Turns& turns);

}  // namespace tutti
