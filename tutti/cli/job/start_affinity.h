#pragma once
// Restores the processors that the process was started with, after OpenMP has changed them.
//
// Where OMP_PROC_BIND, OMP_PLACES or GOMP_CPU_AFFINITY are set, libgomp binds the first thread to
// one place when the program is loaded, before main. Threads outside of a team, and processes,
// inherit this: readers, progress threads, mpirun and all of its ranks.

namespace tutti {

/// Gives the calling thread the affinity mask that the process was started with: a launcher,
/// taskset, numactl or a cpuset set it. The other threads of teams stay where OpenMP puts them.
/// Call it first in main; it does nothing where the system refuses.
void restore_start_affinity();

}  // namespace tutti
