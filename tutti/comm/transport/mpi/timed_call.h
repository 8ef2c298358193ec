#pragma once
// Collective calls of MPI that give up after a while: for setting up, when nothing that could say
// who is missing exists. Internal to comm/transport/mpi.

#include <mpi.h>

#include <span>
#include <string>
#include <vector>

namespace tutti::comm {

/// A communicator of the same ranks, whose errors are returned. `who` begins the CommError that is
/// thrown when not all ranks come within `timeout` seconds: "rank 2: setting up communication".
/// What has not come to its end then is left as it is.
MPI_Comm duplicate(MPI_Comm comm, const std::string& who, double timeout);

/// The texts of all ranks, by rank. They need not be of equal length.
std::vector<std::string> gather_texts(const std::string& mine, MPI_Comm comm,
                                      const std::string& who, double timeout);

/// `data` of rank 0 to all.
void broadcast(std::span<char> data, MPI_Comm comm, const std::string& who, double timeout);

}  // namespace tutti::comm
