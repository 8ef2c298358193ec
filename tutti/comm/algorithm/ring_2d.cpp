// Two dimensions: ranks in rows and columns as nearly square as their number allows, rings along
// both: for a torus, or many equal ranks.
//
//   allreduce  2 (c-1) + 2 (r-1) rounds,  sent 2 S (c-1)/c + 2 S/c (r-1)/r = 2 S (n-1)/n,  reduced
//              S (n-1)/n
//
// This has the ring's bandwidth in about 4 sqrt(n) rounds instead of 2 n. A prime number of ranks
// makes one row: the ring itself. S = elements of the vector, n = r c ranks.

#include "tutti/comm/algorithm/hierarchy.h"

namespace tutti::comm {
namespace {

// The smallest divisor that is not below the square root.
int columns_of(int ranks) {
  int columns = ranks;
  for (int c = ranks; c * c >= ranks; --c)
    if (ranks % c == 0) columns = c;
  return columns;
}

Schedule ring_2d_schedule(const Task& task) {
  return allreduce_in_rows(task, place_in_grid(task, columns_of(task.ranks)), "ring_2d", ring,
                           ring);
}
Steps ring_2d_steps(const Task& task) {
  return steps_in_rows(task, columns_of(task.ranks), ring, ring);
}
std::string ring_2d_refusal(const Task& task) {
  return task.kind == Collective::allreduce ? "" : does_not_do("ring_2d", task);
}
bool ring_2d_reproducible(const Task& task) { return task.ranks <= 2; }

}  // namespace

const Algorithm ring_2d{"ring_2d", ring_2d_refusal, ring_2d_schedule, ring_2d_steps,
                        ring_2d_reproducible};

}  // namespace tutti::comm
