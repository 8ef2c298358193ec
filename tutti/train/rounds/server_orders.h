#pragma once
// Messages of the first rank of a job to ranks that only serve weights (sync.server_ranks).

#include <cstddef>
#include <vector>

#include "tutti/comm/communicator.h"
#include "tutti/plan/choices.h"

namespace tutti {

/// From rank 0 of the job to one that serves: bytes of any number, whenever it may be. Both wait
/// for each other, the receiver as long as it must.
void tell_server(comm::Communicator& job, int server, std::vector<std::byte> bytes);
std::vector<std::byte> hear_first_worker(comm::Communicator& job);

/// Of rank 0 of the job: what the workers' network was compiled with, to all ranks that serve.
void tell_choices(comm::Communicator& job, int workers, const Choices& choices);

}  // namespace tutti
