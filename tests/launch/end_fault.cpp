// Preloaded into the ranks of a job: rank 1 fails when rank 0 has been in MPI_Finalize for a
// second. END_FAULT selects how: it aborts the job like a rank that reports an error, or is killed.
#include <mpi.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <string_view>

extern "C" int MPI_Finalize() {
  int rank = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  if (rank != 1) return PMPI_Finalize();
  sleep(1);
  const char* fault = std::getenv("END_FAULT");
  if (fault != nullptr && std::string_view(fault) == "abort") MPI_Abort(MPI_COMM_WORLD, 1);
  return std::raise(SIGKILL);
}
