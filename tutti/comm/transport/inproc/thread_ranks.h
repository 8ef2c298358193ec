#pragma once
// Ranks as threads of one process: for tests, and for programs that want several ranks without a
// launcher. Memory is shared, so reductions take the same path as processes of one node
// (comm/transport/shm).

#include <functional>
#include <vector>

#include "tutti/comm/communicator.h"

namespace tutti::comm {

/// Runs body(communicator) on `ranks` threads and returns when all have ended. When a rank throws,
/// every other rank's wait throws a CommError that names it; the first rank's exception is rethrown
/// here. `nodes`: the node of each rank; empty: all on one. Ranks of different nodes behave as if
/// they did not see each other's memory: their messages are copied, over a wire of their own.
void run_ranks(int ranks, const std::function<void(Communicator&)>& body,
               const std::vector<int>& nodes = {});

/// Makes a communicator of one rank, for programs that run without a launcher.
std::unique_ptr<Communicator> make_single_communicator();

}  // namespace tutti::comm
