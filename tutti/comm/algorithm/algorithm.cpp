#include "tutti/comm/algorithm/algorithm.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "tutti/base/error.h"

namespace tutti::comm {
namespace {

// Not an array of references to the entries: their order of construction among files is
// unspecified, copies would come too early.
const std::array<const Algorithm*, 8> kOrder{
    &pairwise, &recursive_doubling, &vector_halving, &ring,
    &binomial, &double_tree,        &two_level,      &grid};

bool needs_parts(Collective kind) {
  return kind == Collective::reduce_scatter || kind == Collective::allgather ||
         kind == Collective::gather || kind == Collective::scatter;
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
  for (task.rank = 0; task.rank < task.ranks; ++task.rank) {
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
  if (needs_parts(task.kind) || !task.parts.empty()) {
    if (task.parts.size() != n)
      fail(fmt::format("{} parts for {} ranks", task.parts.size(), task.ranks));
    size_t end = 0;
    for (const Slice& part : task.parts) {
      if (part.begin != end)
        fail(fmt::format("a part begins at element {}, not where the one before it ends ({})",
                         part.begin, end));
      end = part.end();
    }
    if (end != task.count) fail(fmt::format("the parts end at element {} of {}", end, task.count));
  }
  if (task.kind == Collective::all_to_all && (task.sends.size() != n || task.receives.size() != n))
    fail(fmt::format("{} blocks to send and {} to receive for {} ranks", task.sends.size(),
                     task.receives.size(), task.ranks));
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
  if (!task.nodes.empty() && (task.nodes.front() != 0 || task.nodes.back() != task.ranks))
    fail("the table of nodes does not cover the ranks");
}

std::string refusal_of(const Algorithm& algorithm, const Task& task) {
  if (!algorithm.serves_exchange && task.leaves.replicas > 0)
    return fmt::format("{} does not sum several parts of a rank", algorithm.name);
  if (!algorithm.serves_exchange && task.shared_output)
    return fmt::format("{} does not write an output that ranks share", algorithm.name);
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
