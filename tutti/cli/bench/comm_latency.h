#pragma once
// Point to point, as osu_latency: what half a round trip between ranks 0 and 1 takes through our
// channels.

#include "tutti/comm/communicator.h"

namespace tutti {

/// Seconds: half of the mean round trip of `iterations` after `warmup`, as rank 0 measures it, on
/// every rank. The message lies in a window; as a receiver may write to it, it is copied out, also
/// where ranks share memory. Collective; at least two ranks, of which the others wait.
double bench_latency(comm::Communicator& communicator, size_t bytes, int warmup, int iterations);

}  // namespace tutti
