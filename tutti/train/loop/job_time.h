#pragma once
// Processor time of a whole job, from what each rank sees of its own processors.

#include "tutti/comm/communicator.h"
#include "tutti/device/cpu/machine_watch.h"

namespace tutti {

/// Collective. What the ranks' processors did since the watches were made, each processor counted
/// once however many ranks may run on it, and each process once however many ranks it is; `seconds`
/// is the ranks' mean.
ProcessorTime processor_time_of_job(comm::Communicator& communicator, const MachineWatch& watch);

}  // namespace tutti
