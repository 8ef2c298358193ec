#pragma once
// Where OpenMP's own variables put the threads of a team: OMP_PROC_BIND, OMP_PLACES,
// GOMP_CPU_AFFINITY and their kin.

#include <vector>

namespace tutti {

/// The processors that the threads of a team are bound to, by the kernel's numbers, rising; empty
/// where OpenMP binds none.
std::vector<int> team_processors();

}  // namespace tutti
