#pragma once
// The processor time of a whole job, from each rank's view of its own processors.

#include "tutti/comm/communicator.h"
#include "tutti/device/cpu/machine_watch.h"

namespace tutti::train {

/// Collective. Returns the use of the ranks' processors since the watches were made. Each processor
/// counts once even if several ranks run on it, and each process once even if it holds several
/// ranks; `seconds` is the ranks' mean.
device::ProcessorTime processor_time_of_job(comm::Communicator& communicator,
                                            const device::MachineWatch& watch);

}  // namespace tutti::train
