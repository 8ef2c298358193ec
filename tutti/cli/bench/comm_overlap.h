#pragma once
// How much of a collective's time disappears behind a rank that computes meanwhile: `tutti bench
// comm --overlap`.

#include "tutti/cli/bench/comm_turns.h"

namespace tutti {

/// (alone + computation - both) / alone, from medians: 1 is all of its time. The computation takes
/// as long as the collective does alone, fits in registers, and calls progress() every millisecond,
/// as kernels of a step would. Collective.
double hidden_part(comm::Communicator& communicator, comm::Operation& operation,
                   const Turns& turns);

}  // namespace tutti
