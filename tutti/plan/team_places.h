#pragma once
// Where OpenMP's own variables (OMP_PROC_BIND, OMP_PLACES, GOMP_CPU_AFFINITY and their kin) put the
// threads of a team.

#include <vector>

namespace tutti::plan {

/// Returns the processors that the threads of a team are bound to, as kernel numbers in rising
/// order; empty if OpenMP binds none.
std::vector<int> team_processors();

}  // namespace tutti::plan
