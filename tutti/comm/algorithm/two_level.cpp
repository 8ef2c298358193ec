// Two levels: the ranks of a node first do all that they can do among themselves, and only the rest
// travels between nodes.
//
// Each node has a worker for each rank of another node (dealt_on()); its ranks share this work. For
// m nodes of l ranks, n = l m, S = elements of the vector, one sum for each node:
//
//   reduce_scatter  2 rounds.  Ranks send the workers of their node the slices that these work for,
//                   (l-1) messages, S (l-1)/l; workers add, and send the sums to their owners,
//                   m-1 messages, S/l (m-1)/m, which add them.
//                   Sent S (n-1)/n,  reduced S (n-1)/n
//   allgather       2 rounds, the same in reverse.  Sent S (n-1)/n
//   allreduce       4 rounds, both.  Sent 2 S (n-1)/n, of that 2 S/l (m-1)/m between nodes.
//                   Among many equal nodes (more than 16, or a power of two above 4) whose ranks
//                   may add everything: pairwise inside the node, recursive halving between nodes,
//                   2 + 2 log2 m rounds and 2 log2 m messages between nodes, as many elements.
//                   Between two such nodes recursive doubling: 3 rounds, as many elements
//   all_to_all      2 rounds, equal blocks.  Blocks for a rank of another node go to its worker,
//                   and from there in one message: m-1 messages of l blocks instead of n-l of one.
//                   Sent S (2n-l-m)/n, of that S (n-l)/n between nodes
//
// Among more than 64 equal nodes, where ranks may add everything, reduce_scatter and allgather go
// in rows too (hierarchy.h): 2 + log2 m rounds, about 1 + log2 m messages between nodes. Sent S, of
// that S/l between nodes (up to S/n more where m is no power of two), reduced S (n-1)/n (up to S).
// A rank whose part is k times the mean has about k messages more, and for m just above a power of
// two some ranks send to many others (recursive_halving.cpp). Tasks with leaves, gaps or a shared
// output go the direct way.
//
// Nodes may be uneven and their ranks anywhere; then a worker has about k/l messages to a node with
// k ranks. Sums are added in any order, unless Task::ordered asks for the order of
// comm/schedule/tree.h or the nodes are nodes of the tree anyway. In order, a node's ranks add up
// whole nodes of the tree: at most 2 log2 l sums, each of which travels (node_sums.h).

#include "tutti/comm/algorithm/two_level.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>

#include "tutti/comm/algorithm/hierarchy.h"
#include "tutti/comm/algorithm/node_sums.h"

namespace tutti::comm {
namespace {

// Whether the ranks of each node may add everything that they have.
bool takes_any_order(const Task& task, const NodeTable& table) {
  return !task.ordered || nodes_follow_tree(task, table);
}

bool takes_order(const Task& task, const NodeTable& table) {
  return task.ordered || nodes_follow_tree(task, table);
}

// How the ranks of a column, one of each node, add between nodes in rows. Two nodes exchange all
// data in one round, which is not more than in two.
const Algorithm& along_columns(const NodeTable& table) {
  return table.nodes() == 2 ? recursive_doubling : recursive_halving;
}

// Up to this many nodes a rank sends a message to each, all at once, rather than a logarithm of
// them one after another. Bytes are about the same. Assumed, not measured: a message keeps its rank
// busy for about a microsecond, and a round takes about ten, so 64 messages take as long as 6
// rounds. (Prices of comm/cost do not help: no message keeps a rank busy in them.)
constexpr int kFewNodes = 64;

// Whether, among that many nodes, rows are better than messages from every rank to each node.
bool pays_in_rows(const Task& task, int nodes) {
  switch (task.kind) {
    case Collective::allreduce:
      return nodes == 2 || nodes > 16 ||
             (nodes > 4 && std::has_single_bit(static_cast<unsigned>(nodes)));
    case Collective::reduce_scatter: return nodes > kFewNodes;
    case Collective::allgather: return nodes > kFewNodes && !task.shared_output;
    default: return false;
  }
}

bool in_rows(const Task& task, const NodeTable& table) {
  if (task.leaves.replicas > 0 || task.gaps || !table.equal() || !pays_in_rows(task, table.nodes()))
    return false;
  return !reduces(task.kind) || takes_any_order(task, table);
}

GridPlace rows_of(const Task& task, const NodeTable& table) {
  const int row = table.node(task.rank);
  const std::span<const int> mine = table.ranks_of(row);
  GridPlace at{.row = row,
               .column = static_cast<int>(std::ranges::lower_bound(mine, task.rank) - mine.begin()),
               .row_ranks = {mine.begin(), mine.end()},
               .column_ranks = {}};
  for (int k = 0; k < table.nodes(); ++k)
    at.column_ranks.push_back(table.ranks_of(k)[static_cast<size_t>(at.column)]);
  return at;
}

Schedule schedule_in_rows(const Task& task, const NodeTable& table) {
  const GridPlace at = rows_of(task, table);
  const RankAt rank_at = [&](int node, int place) {
    return table.ranks_of(node)[static_cast<size_t>(place)];
  };
  switch (task.kind) {
    case Collective::reduce_scatter:
      return reduce_scatter_in_rows(task, at, "two_level", pairwise, rank_at);
    case Collective::allgather: return allgather_in_rows(task, at, "two_level", pairwise, rank_at);
    default: return allreduce_in_rows(task, at, "two_level", pairwise, along_columns(table));
  }
}

Schedule two_level_schedule(const Task& task) {
  const NodeTable table(task);
  if (table.nodes() == 1) {
    Schedule schedule = pairwise.schedule(task);
    schedule.algorithm = "two_level";
    return schedule;
  }
  if (in_rows(task, table)) return schedule_in_rows(task, table);
  ScheduleBuilder builder(task, "two_level");
  if (task.kind == Collective::all_to_all) {
    exchange_by_nodes(builder, task, table);
    return builder.build();
  }
  if (reduces(task.kind))
    reduce_by_nodes(
        builder, task, table, takes_order(task, table),
        output(task.kind == Collective::allreduce ? task.part() : Slice{0, task.part().count}));
  if (task.kind == Collective::allreduce) {
    builder.round();
    gather_by_nodes(builder, task, table, output(task.part()));
  } else if (task.kind == Collective::allgather) {
    gather_by_nodes(builder, task, table, input({0, task.part().count}));
  }
  return builder.build();
}

Steps two_level_steps(const Task& task) {
  const NodeTable table(task);
  if (table.nodes() == 1) return pairwise.steps(task);
  if (in_rows(task, table))
    return steps_in_rows(task, table.size(0), pairwise, along_columns(table));
  const double n = task.ranks, m = table.nodes(), l = n / m;
  if (task.leaves.replicas > 0 || task.shared_output || !table.equal() ||
      (reduces(task.kind) && task.ordered && !nodes_follow_tree(task, table)))
    return count_busiest(two_level_schedule, task);
  const double others = static_cast<double>(task.count) * (n - 1) / n, rounds = l > 1 ? 2 : 1;
  switch (task.kind) {
    case Collective::all_to_all:
      return {rounds, static_cast<double>(task.count) * (2 * n - l - m) / n, 0};
    case Collective::allgather: return {rounds, others, 0};
    case Collective::reduce_scatter: return {rounds, others, others};
    default: return {2 * rounds, 2 * others, others};
  }
}

std::string two_level_refusal(const Task& task) {
  switch (task.kind) {
    case Collective::allreduce:
    case Collective::reduce_scatter:
    case Collective::allgather: return "";
    case Collective::all_to_all:
      return task.equal_blocks ? "" : "two_level needs an all_to_all of equal blocks";
    default: return does_not_do("two_level", task);
  }
}

// Most nodes to each of which a rank may send a message of its own, where two levels have no other
// way: some hundred microseconds of messages, about the time that a bucket's bytes save.
constexpr int kMostDirect = 512;

std::string two_level_drawback(const Task& task) {
  const NodeTable table(task);
  if (table.nodes() == table.ranks()) return "no node has several ranks";
  // Where no algorithm of few messages does the task, two levels still have the fewest.
  const bool others_do =
      task.kind != Collective::all_to_all && !task.shared_output && task.leaves.replicas == 0;
  if (table.nodes() > kMostDirect && others_do && !in_rows(task, table))
    return fmt::format("two_level would send a message from each rank to each of {} nodes: {}",
                       table.nodes(),
                       table.equal() ? "nodes cannot add all that they have in the order of the sum"
                                     : "not all nodes have as many ranks");
  if (!reduces(task.kind) || !task.ordered || table.nodes() == 1 || nodes_add_in_order(task, table))
    return "";
  return "two_level could add nothing on a node: sums are taken in the order of the ranks, and no "
         "two ranks of a node are neighbours in it";
}

bool two_level_reproducible(const Task& task) {
  return !reduces(task.kind) || takes_order(task, NodeTable(task));
}

}  // namespace

const Algorithm two_level{.name = "two_level",
                          .refusal = two_level_refusal,
                          .schedule = two_level_schedule,
                          .steps = two_level_steps,
                          .reproducible = two_level_reproducible,
                          .serves_exchange = true,
                          .serves_gaps = true,
                          .drawback = two_level_drawback};

}  // namespace tutti::comm
