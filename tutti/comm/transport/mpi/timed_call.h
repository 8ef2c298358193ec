#pragma once
// Collective calls of MPI that give up after a while: for the set-up, when nothing exists yet that
// could name missing ranks. Internal to comm/transport/mpi.

#include <mpi.h>

#include <span>
#include <string>
#include <vector>

namespace tutti::comm {

/// Makes a communicator of the same ranks, whose errors are returned. `who` begins the CommError
/// that is thrown when not all ranks come within `timeout` seconds: "rank 2: setting up
/// communication". The unfinished call is then left as it is.
MPI_Comm duplicate(MPI_Comm comm, const std::string& who, double timeout);

/// Returns the texts of all ranks, by rank. They need not be of equal length.
std::vector<std::string> gather_texts(const std::string& mine, MPI_Comm comm,
                                      const std::string& who, double timeout);

/// Copies `data` of rank 0 to all ranks.
void broadcast(std::span<char> data, MPI_Comm comm, const std::string& who, double timeout);

}  // namespace tutti::comm
