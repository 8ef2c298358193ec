#pragma once
// Facts for `tutti doctor` about the host beside its processors: memory that processes share,
// limits, other work, and the MPI installations in PATH. Linux.

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace tutti::cli {

/// Memory that ranks of this host can share.
struct SharedMemory {
  bool anonymous = false;  ///< memfd, opened through /proc: what our own transport uses
  int64_t bytes = 0;       ///< size of /dev/shm, which MPI libraries use; 0: there is none
  int64_t free_bytes = 0;
  std::string copy_refused;  ///< why a process may not read another's memory (CMA); empty: it may
};
SharedMemory probe_shared_memory();

/// Returns the bytes that may be locked into memory, which InfiniBand's drivers do; -1: no limit.
int64_t locked_memory_limit();
/// Returns whether the host has InfiniBand or another network that locks memory.
bool has_infiniband();

struct Load {
  double average = 0;  ///< over the last minute: processes that run or would run
  int runnable = 0;    ///< now, including this one
};
/// Parses the text of /proc/loadavg: "0.52 0.58 0.59 3/602 1234".
Load parse_load(const std::string& text);
/// Returns the least of several readings within 50 ms, so that a process that only woke up does not
/// count.
Load probe_load();

/// Returns launchers of MPI, each file once: `mpirun`, `mpiexec` and the like in the folders of
/// PATH.
std::vector<std::string> mpi_launchers(std::string_view path);
/// Returns "Open MPI", "MPICH", or "" when the program's name does not tell.
std::string mpi_family(std::string_view launcher_or_library);

/// Starts MPI in a process of its own, where it can do no harm, and returns the thread level that
/// it grants ("multiple"), or why it does not start.
struct MpiProbe {
  std::string threads;  ///< empty: it does not start
  std::string problem;
};
MpiProbe probe_mpi();

}  // namespace tutti::cli
