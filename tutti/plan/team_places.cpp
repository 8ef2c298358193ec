#include "tutti/plan/team_places.h"

#include <omp.h>

#include <algorithm>

namespace tutti::plan {

std::vector<int> team_processors() {
  const omp_proc_bind_t binding = omp_get_proc_bind();
  std::vector<int> processors;
  if (binding == omp_proc_bind_false) return processors;
  for (int place = 0; place < omp_get_num_places(); ++place) {
    // All threads share the place of the first one.
    if (binding == omp_proc_bind_master && place != omp_get_place_num()) continue;
    std::vector<int> ids(static_cast<size_t>(omp_get_place_num_procs(place)));
    if (!ids.empty()) omp_get_place_proc_ids(place, ids.data());
    processors.insert(processors.end(), ids.begin(), ids.end());
  }
  std::ranges::sort(processors);
  processors.erase(std::unique(processors.begin(), processors.end()), processors.end());
  return processors;
}

}  // namespace tutti::plan
