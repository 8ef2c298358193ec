#include "tutti/comm/control/control_tree.h"

#include <algorithm>

namespace tutti::comm {

ControlTree::ControlTree(int rank, int ranks, int root) {
  const int v = (rank - root + ranks) % ranks;
  const int lowest = v == 0 ? ranks : v & -v;
  const auto rank_of = [&](int virtual_rank) { return (virtual_rank + root) % ranks; };
  if (v != 0) parent = rank_of(v - lowest);
  for (int step = 1; step < lowest && v + step < ranks; step *= 2) {
    children.push_back(rank_of(v + step));
    sizes.push_back(std::min(step, ranks - v - step));
    size += sizes.back();
  }
}

}  // namespace tutti::comm
