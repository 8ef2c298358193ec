#pragma once
// Ranks that only serve weights (sync.server_ranks): the other end of a run's workers.

#include <cstddef>
#include <vector>

#include "tutti/comm/communicator.h"
#include "tutti/plan/choices.h"
#include "tutti/train/network.h"
#include "tutti/train/trainer.h"

namespace tutti {

/// Workers and servers have buckets of one size without asking each other: the size that is
/// measured (compile_network) is of sums.
NetworkSpec with_served_buckets(NetworkSpec network);

/// From rank 0 of the job to one that serves: bytes of any number, whenever it may be. Both wait
/// for each other, the receiver as long as it must.
void tell_server(comm::Communicator& job, int server, std::vector<std::byte> bytes);
std::vector<std::byte> hear_first_worker(comm::Communicator& job);

/// Of rank 0 of the job: what the workers' network was compiled with, to all ranks that serve.
void tell_choices(comm::Communicator& job, int workers, const Choices& choices);

/// What a rank that serves does instead of train(): serves the rounds of the workers until they
/// dismiss it. `spec.communicator` has the servers alone, `spec.job` the workers before them.
RunResult serve_workers(const TrainerSpec& spec);

}  // namespace tutti
