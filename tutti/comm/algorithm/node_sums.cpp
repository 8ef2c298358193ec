#include "tutti/comm/algorithm/node_sums.h"

#include <algorithm>

namespace tutti::comm {
namespace {

int leaves_of(const Task& task) {
  return task.leaves.replicas > 0 ? task.leaves.replicas : task.ranks;
}

// The leaves of the ranks lo .. hi-1.
Range leaves_in(const Task& task, Range ranks) {
  if (task.leaves.replicas == 0) return ranks;
  const auto& first = task.leaves.first;
  return {first[static_cast<size_t>(ranks.lo)], first[static_cast<size_t>(ranks.hi)]};
}

int rank_with(const Task& task, int leaf) {
  if (task.leaves.replicas == 0) return leaf;
  const auto& first = task.leaves.first;
  return static_cast<int>(std::ranges::upper_bound(first, leaf) - first.begin()) - 1;
}

// Whether one rank has all of `node`.
bool is_part(const Task& task, Range node) {
  return rank_with(task, node.lo) == rank_with(task, node.hi - 1);
}

// Runs of neighbouring ranks on a node.
std::vector<Range> runs_of(const NodeTable& table, int node) {
  std::vector<Range> runs;
  for (const int p : table.ranks_of(node))
    if (!runs.empty() && runs.back().hi == p)
      ++runs.back().hi;
    else
      runs.push_back({p, p + 1});
  return runs;
}

}  // namespace

std::vector<Range> parts_of(const Task& task, int rank) {
  if (task.leaves.replicas == 0) return {{rank, rank + 1}};
  return maximal_subtrees(task.leaves.replicas, leaves_in(task, {rank, rank + 1}));
}

std::vector<Addend> addends_of(const Task& task, const NodeTable& table, int node) {
  std::vector<Addend> all;
  for (const int p : table.ranks_of(node)) {
    const std::vector<Range> parts = parts_of(task, p);
    for (size_t i = 0; i < parts.size(); ++i) all.push_back({p, i, parts[i]});
  }
  return all;
}

std::vector<NodeSum> sums_of(const Task& task, const NodeTable& table, int node, bool ordered) {
  if (!ordered) {
    const bool single =
        table.size(node) == 1 && parts_of(task, table.ranks_of(node).front()).size() == 1;
    return {{{node, node + 1}, single}};
  }
  std::vector<NodeSum> all;
  for (const Range run : runs_of(table, node)) {
    if (task.leaves.replicas == 0 && run.size() == 1) {
      all.push_back({run, true});
      continue;
    }
    for (const Range part : maximal_subtrees(leaves_of(task), leaves_in(task, run)))
      all.push_back({part, is_part(task, part)});
  }
  return all;
}

bool nodes_follow_tree(const Task& task, const NodeTable& table) {
  for (int k = 0; k < table.nodes(); ++k)
    if (!table.contiguous(k) || sums_of(task, table, k, true).size() > 1) return false;
  return true;
}

bool nodes_add_in_order(const Task& task, const NodeTable& table) {
  for (int k = 0; k < table.nodes(); ++k)
    for (const NodeSum& sum : sums_of(task, table, k, true))
      if (!sum.single) return true;
  return false;
}

}  // namespace tutti::comm
