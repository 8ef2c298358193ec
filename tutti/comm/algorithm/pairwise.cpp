// Pairwise exchange: every rank sends every other rank its block, all at once.
//
//   reduce_scatter  1 round,  n-1 messages,  sent S (n-1)/n,  reduced S (n-1)/n
//                   The owner of a part takes its whole sum, in any order: so the tree's, and
//                   16-bit data travel as 16 bits.
//   allgather       1 round,  n-1 messages,  sent S (n-1)/n
//   allreduce       both, one after the other
//   all_to_all      1 round,  n-1 messages;  gather, scatter: 1 round, n-1 messages at the root
//
// With leaves, S counts once for each part that a rank gives. Where the output is shared, only
// signals are sent instead of its parts. S = elements of the vector, n = ranks. This has the ring's
// bandwidth in two rounds, as long as a network bears n-1 messages at a time.

#include <algorithm>

#include "tutti/comm/algorithm/algorithm.h"
#include "tutti/comm/algorithm/node_sums.h"
#include "tutti/comm/algorithm/tree_steps.h"

namespace tutti::comm {
namespace {

// Each rank begins with its right neighbour, so that the first targets differ.
template <class Body>
void for_each_peer(const Task& task, Body body) {
  for (int k = 1; k < task.ranks; ++k) body((task.rank + k) % task.ranks);
}

// `slice` of my own part number i.
Block part_of_input(const Task& task, size_t i, Slice slice) {
  return input({i * task.leaves.stride + slice.begin, slice.count});
}

void reduce_parts(ScheduleBuilder& builder, const Task& task, Block to) {
  const Slice mine = task.part();
  const size_t parts = parts_of(task, task.rank).size();
  std::vector<std::vector<TreeLeaf>> of_rank(static_cast<size_t>(task.ranks));
  for (int p = 0; p < task.ranks; ++p)
    for (const Range node : parts_of(task, p)) {
      auto& theirs = of_rank[static_cast<size_t>(p)];
      theirs.push_back({node, p == task.rank ? part_of_input(task, theirs.size(), mine)
                                             : builder.staging_for(mine.count)});
    }
  for_each_peer(task, [&](int peer) {
    for (const TreeLeaf& leaf : of_rank[static_cast<size_t>(peer)])
      builder.receive(peer, leaf.block);
    for (size_t i = 0; i < parts; ++i) builder.send(peer, part_of_input(task, i, task.part(peer)));
  });
  std::vector<TreeLeaf> leaves;
  for (const auto& theirs : of_rank) leaves.insert(leaves.end(), theirs.begin(), theirs.end());
  const Block sum = builder.sum_for(to);
  add_tree(builder, leaves, sum);
  builder.finish(to, sum);
}

void share_parts(ScheduleBuilder& builder, const Task& task, Block mine) {
  if (task.shared_output)
    return for_each_peer(task, [&](int peer) { builder.await(peer), builder.signal(peer); });
  for_each_peer(task, [&](int peer) {
    builder.receive(peer, output(task.part(peer)));
    builder.send(peer, mine);
  });
  builder.copy(output(task.part()), mine);
}

void to_root(ScheduleBuilder& builder, const Task& task) {
  const Block mine = input({0, task.part().count});
  if (task.rank != task.root) return builder.send(task.root, mine);
  for_each_peer(task, [&](int peer) { builder.receive(peer, output(task.part(peer))); });
  builder.copy(output(task.part()), mine);
}

void from_root(ScheduleBuilder& builder, const Task& task) {
  const Block mine = output({0, task.part().count});
  if (task.rank != task.root) return builder.receive(task.root, mine);
  for_each_peer(task, [&](int peer) { builder.send(peer, input(task.part(peer))); });
  builder.copy(mine, input(task.part()));
}

void to_all(ScheduleBuilder& builder, const Task& task) {
  for_each_peer(task, [&](int peer) {
    builder.receive(peer, output(task.received_from(peer)));
    builder.send(peer, input(task.sent_to(peer)));
  });
  builder.copy(output(task.received_from(task.rank)), input(task.sent_to(task.rank)));
}

Schedule pairwise_schedule(const Task& task) {
  ScheduleBuilder builder(task, "pairwise");
  switch (task.kind) {
    case Collective::barrier:
      for_each_peer(task, [&](int peer) { builder.await(peer), builder.signal(peer); });
      break;
    case Collective::reduce_scatter:
      reduce_parts(builder, task, output({0, task.part().count}));
      break;
    case Collective::allgather: share_parts(builder, task, input({0, task.part().count})); break;
    case Collective::allreduce:
      reduce_parts(builder, task, output(task.part()));
      builder.round();
      share_parts(builder, task, output(task.part()));
      break;
    case Collective::gather: to_root(builder, task); break;
    case Collective::scatter: from_root(builder, task); break;
    case Collective::all_to_all: to_all(builder, task); break;
    case Collective::broadcast:
    case Collective::reduce: break;
  }
  return builder.build();
}

Steps pairwise_steps(const Task& task) {
  const double n = task.ranks;
  const double others = static_cast<double>(task.count) * (n - 1) / n;
  double most = 1, all = n;  // parts of one rank, and of all ranks
  if (task.leaves.replicas > 0) {
    all = 0;
    for (int p = 0; p < task.ranks; ++p) {
      const auto parts = static_cast<double>(task.leaves.parts_of(p));
      most = std::max(most, parts);
      all += parts;
    }
  }
  const double adds = static_cast<double>(task.count) / n * (all - 1);
  switch (task.kind) {
    case Collective::barrier: return {1, 0, 0};
    case Collective::reduce_scatter: return {1, most * others, adds};
    case Collective::allreduce: return {2, most * others + (task.shared_output ? 0 : others), adds};
    default: return {1, others, 0};
  }
}

std::string pairwise_refusal(const Task& task) {
  if (task.kind == Collective::broadcast || task.kind == Collective::reduce)
    return does_not_do("pairwise", task);
  return task.shared_output && count_nodes(task.node_of) > 1
             ? "pairwise does not write an output that only the ranks of a node share"
             : "";
}

}  // namespace

const Algorithm pairwise{.name = "pairwise",
                         .refusal = pairwise_refusal,
                         .schedule = pairwise_schedule,
                         .steps = pairwise_steps,
                         .reproducible = [](const Task&) { return true; },
                         .serves_exchange = true,
                         .serves_gaps = true};

}  // namespace tutti::comm
