#pragma once
// The processors that the process was started with, whatever OpenMP has made of them since.
//
// Where OMP_PROC_BIND, OMP_PLACES or GOMP_CPU_AFFINITY are set, libgomp binds the first thread to
// one place when the program is loaded, before main. Threads that are no members of a team, and
// processes, inherit that: readers, threads of progress, mpirun and all of its ranks.

namespace tutti {

/// Gives the calling thread the affinity mask that the process was started with: of a launcher,
/// taskset, numactl or a cpuset. The other threads of teams stay where OpenMP puts them. To be
/// called first in main; does nothing where the system refuses.
void restore_start_affinity();

}  // namespace tutti
