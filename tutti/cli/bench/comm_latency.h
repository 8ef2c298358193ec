#pragma once
// Point-to-point latency, as in osu_latency: half the round trip time between ranks 0 and 1 through
// our channels.

#include "tutti/comm/communicator.h"

namespace tutti {

/// Returns half of the mean round trip in seconds, over `iterations` after `warmup`, as rank 0
/// measures it, on every rank. The message lies in a window; it is copied out, also where ranks
/// share memory, because a receiver may write to it. Collective; needs at least two ranks, of which
/// the others wait.
double bench_latency(comm::Communicator& communicator, size_t bytes, int warmup, int iterations);

}  // namespace tutti
