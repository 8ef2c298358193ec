#pragma once
// Chooses the wire of a job that MPI has started. Internal to comm/transport/mpi.

#include <mpi.h>

#include <optional>
#include <string>
#include <vector>

#include "tutti/comm/transport/process_options.h"

namespace tutti::comm {

/// Returns whether this MPI library sends messages between hosts over TCP, from the names of its
/// variables (MPI_T), after MPI_Init. Open MPI drops the variables of components that it does not
/// use, so the others show its transport: pml_ob1 with btl_tcp and no transport of another network.
/// False where that is not sure, as with every other MPI library.
bool sends_over_tcp(const std::vector<std::string>& variables);
/// Returns the names of MPI's variables (MPI_T); none where MPI does not tell them.
std::optional<std::vector<std::string>> variable_names(int thread_level);

/// Returns the wire for the ranks of `comm`, the same on all. Collective. `who` and `timeout` as
/// for timed_call.h. Throws CommError where the ranks ask for different ones.
WireKind choose_wire(WireKind asked, MPI_Comm comm, const std::string& who, double timeout);

}  // namespace tutti::comm
