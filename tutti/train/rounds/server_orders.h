#pragma once
// Messages from the job's first rank to ranks that only serve weights (sync.server_ranks).

#include <cstddef>
#include <vector>

#include "tutti/comm/communicator.h"
#include "tutti/plan/choices.h"

namespace tutti::train {

/// Sends any number of bytes from the job's rank 0 to a serving rank, at any time;
/// hear_first_worker() receives them. Both wait for each other, the receiver as long as necessary.
void tell_server(comm::Communicator& job, int server, std::vector<std::byte> bytes);
std::vector<std::byte> hear_first_worker(comm::Communicator& job);

/// Called on the job's rank 0: sends the choices of the workers' compiled network to all serving
/// ranks.
void tell_choices(comm::Communicator& job, int workers, const plan::Choices& choices);

}  // namespace tutti::train
