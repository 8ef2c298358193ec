#pragma once
// A TCP wire for a job that MPI has started: MPI carries the ranks' addresses and a secret, once,
// and ends the job. Internal to comm/transport/mpi.

#include <mpi.h>

#include <memory>
#include <string>

#include "tutti/comm/transport/wire.h"

namespace tutti::comm {

/// Makes the wire. Collective among the ranks of `comm`, which it takes over. `who` and `timeout`
/// as for timed_call.h; `address` as in ProcessOptions.
std::unique_ptr<Wire> make_tcp_wire(MPI_Comm comm, const std::string& who, double timeout,
                                    const std::string& address);

}  // namespace tutti::comm
