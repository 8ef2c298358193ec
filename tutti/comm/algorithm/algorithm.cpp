#include "tutti/comm/algorithm/algorithm.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "tutti/base/error.h"
#include "tutti/comm/algorithm/nodes.h"
#include "tutti/comm/schedule/tree.h"

namespace tutti::comm {
namespace {

// Pointers: the order of construction among files is unspecified, so copies could come too early.
const std::array<const Algorithm*, 9> kOrder{
    &pairwise,    &recursive_doubling, &recursive_halving, &ring, &binomial,
    &double_tree, &two_level,          &ring_2d,           &bruck};

// Returns the ranks that count_busiest() counts.
std::vector<int> unlike_ranks(const Task& task) {
  constexpr int kAll = 64;
  std::vector<int> ranks;
  const auto add = [&](int rank) {
    for (const int p : {rank - 1, rank, rank + 1})
      if (0 <= p && p < task.ranks) ranks.push_back(p);
  };
  if (task.ranks <= kAll) {
    for (int p = 0; p < task.ranks; ++p) ranks.push_back(p);
    return ranks;
  }
  for (int p = 1; p < task.ranks; p *= 2) add(p), add(task.ranks - p);
  for (Range node{0, task.ranks}; node.size() > 1; node.lo = split_point(node)) add(node.lo);
  const NodeTable table(task);
  for (const int k : {0, 1, table.nodes() - 1})
    if (table.nodes() > 1)
      for (const int p : table.ranks_of(k)) ranks.push_back(p);
  std::ranges::sort(ranks);
  ranks.erase(std::ranges::unique(ranks).begin(), ranks.end());
  return ranks;
}

}  // namespace

std::span<const Algorithm* const> algorithms() { return kOrder; }

const Algorithm& algorithm_named(std::string_view name) {
  std::string known;
  for (const Algorithm* algorithm : kOrder) {
    if (algorithm->name == name) return *algorithm;
    known += fmt::format("{}{}", known.empty() ? "" : ", ", algorithm->name);
  }
  throw ConfigError(fmt::format("no algorithm is called '{}'; there are {}", name, known));
}

Steps count_steps(const Schedule& schedule) {
  Steps steps;
  double sent = 0, received = 0;
  for (const Round& round : schedule.rounds) {
    steps.rounds += round.sends.empty() && round.receives.empty() ? 0 : 1;
    for (const Message& m : round.sends) sent += static_cast<double>(m.block.count());
    for (const Message& m : round.receives) received += static_cast<double>(m.block.count());
    for (const LocalStep& s : round.steps)
      steps.reduced += s.kind == LocalStep::Kind::reduce ? static_cast<double>(s.to.count()) : 0;
  }
  steps.moved = std::max(sent, received);
  return steps;
}

Steps count_busiest(const std::function<Schedule(const Task&)>& make, Task task) {
  Steps most;
  for (const int rank : unlike_ranks(task)) {
    task.rank = rank;
    const Steps steps = count_steps(make(task));
    most = {std::max(most.rounds, steps.rounds), std::max(most.moved, steps.moved),
            std::max(most.reduced, steps.reduced)};
  }
  return most;
}

std::string does_not_do(std::string_view algorithm, const Task& task) {
  return fmt::format("{} does not do {}", algorithm, name_of(task.kind));
}

void check_task(const Task& task) {
  const auto fail = [&](const std::string& what) {
    throw CommError(fmt::format("{}: {}", name_of(task.kind), what));
  };
  if (task.ranks < 1 || task.rank < 0 || task.rank >= task.ranks)
    fail(fmt::format("rank {} of {}", task.rank, task.ranks));
  if (task.root < 0 || task.root >= task.ranks)
    fail(fmt::format("root {} of {} ranks", task.root, task.ranks));
  const auto n = static_cast<size_t>(task.ranks);
  if (has_parts(task.kind) || !task.parts.empty()) {
    if (task.parts.size() != n)
      fail(fmt::format("{} parts for {} ranks", task.parts.size(), task.ranks));
    size_t end = 0;
    for (const Slice& part : task.parts) {
      if (task.gaps ? part.begin < end : part.begin != end)
        fail(fmt::format("a part begins at element {}, not where the one before it ends ({})",
                         part.begin, end));
      end = part.end();
    }
    if (task.gaps ? end > task.count : end != task.count)
      fail(fmt::format("the parts end at element {} of {}", end, task.count));
  }
  if (task.kind == Collective::all_to_all && (task.sends.size() != n || task.receives.size() != n))
    fail(fmt::format("{} blocks to send and {} to receive for {} ranks", task.sends.size(),
                     task.receives.size(), task.ranks));
  if (const auto two = overlapping(task.receives))
    fail(fmt::format("on rank {} the blocks from ranks {} and {} overlap in the output", task.rank,
                     (*two)[0], (*two)[1]));
  if (const Leaves& leaves = task.leaves; leaves.replicas > 0) {
    if (task.kind != Collective::allreduce && task.kind != Collective::reduce_scatter)
      fail("does not add, but has leaves");
    if (leaves.first.size() != n + 1 || leaves.first.front() != 0 ||
        leaves.first.back() != leaves.replicas || !std::ranges::is_sorted(leaves.first))
      fail(fmt::format("the table of first replicas does not cover {} replicas on {} ranks",
                       leaves.replicas, task.ranks));
    if (leaves.stride < task.count)
      fail(fmt::format("parts of {} elements cannot lie {} apart", task.count, leaves.stride));
  }
  if (task.shared_output && task.kind != Collective::allreduce &&
      task.kind != Collective::allgather)
    fail("its output cannot be shared");
  if (!task.node_of.empty() && task.node_of.size() != n)
    fail(fmt::format("a table of nodes of {} ranks for {}", task.node_of.size(), task.ranks));
  int nodes = 0;
  for (const int node : task.node_of) {
    if (node < 0 || node > nodes)
      fail(fmt::format("node {} comes before node {} in the table", node, nodes));
    nodes = std::max(nodes, node + 1);
  }
}

std::string refusal_of(const Algorithm& algorithm, const Task& task) {
  if (!algorithm.serves_exchange && task.leaves.replicas > 0)
    return fmt::format("{} does not sum several parts of a rank", algorithm.name);
  if (!algorithm.serves_exchange && task.shared_output)
    return fmt::format("{} does not write an output that ranks share", algorithm.name);
  if (!algorithm.serves_gaps && task.gaps)
    return fmt::format("{} needs parts that touch", algorithm.name);
  return algorithm.refusal(task);
}

Schedule make_schedule(const Algorithm& algorithm, Task task) {
  if (task.kind == Collective::allreduce && task.parts.empty())
    task.parts = balanced_parts(task.count, task.ranks);
  check_task(task);
  if (const std::string why = refusal_of(algorithm, task); !why.empty()) throw CommError(why);
  return algorithm.schedule(task);
}

}  // namespace tutti::comm
