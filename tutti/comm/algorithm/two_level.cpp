// Two levels: the ranks of a node among themselves, then each with its counterparts on the other
// nodes, then the node again.
//
//   allreduce  4 + 2 log2 m rounds (m = 2^k nodes of l ranks),  sent 2 S (l-1)/l inside the node
//              and 2 S/l (m-1)/m through the network,  reduced S (1 - 1/(lm))
//
// Pairwise inside the node, vector halving between nodes. Through the network goes 1/l of the
// vector a rank, over all links at once. Needs nodes with equal numbers of ranks. Reproducible
// where that number is a power of two. S = elements of the vector, n = l m ranks.

#include "tutti/comm/algorithm/hierarchy.h"

namespace tutti::comm {
namespace {

// Ranks of a node; 0 when they differ.
int ranks_of_node(const Task& task) {
  if (task.nodes.size() < 2) return task.ranks;
  const int first = task.nodes[1] - task.nodes[0];
  for (size_t k = 1; k + 1 < task.nodes.size(); ++k)
    if (task.nodes[k + 1] - task.nodes[k] != first) return 0;
  return first;
}

Schedule two_level_schedule(const Task& task) {
  return allreduce_in_rows(task, ranks_of_node(task), "two_level", pairwise, vector_halving);
}
Steps two_level_steps(const Task& task) {
  return steps_in_rows(task, ranks_of_node(task), pairwise, vector_halving);
}

std::string two_level_refusal(const Task& task) {
  if (task.kind != Collective::allreduce) return does_not_do("two_level", task);
  return ranks_of_node(task) == 0 ? "two_level needs nodes with equal numbers of ranks" : "";
}

bool two_level_reproducible(const Task& task) {
  return rows_follow_tree(task, ranks_of_node(task));
}

}  // namespace

const Algorithm two_level{"two_level", two_level_refusal, two_level_schedule, two_level_steps,
                          two_level_reproducible};

}  // namespace tutti::comm
