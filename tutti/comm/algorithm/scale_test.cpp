// Tests with a thousand ranks and more in one thread: the results of every algorithm, and the
// load of its schedules on a rank and on a node's link, as functions of the number of ranks.

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>

#include "tutti/comm/algorithm/nodes.h"
#include "tutti/comm/algorithm/played_case.h"
#include "tutti/comm/schedule/selection.h"

namespace tutti::comm {
namespace {

std::vector<int> nodes_of_size(int ranks, int size) {
  std::vector<int> node_of;
  for (int p = 0; p < ranks; ++p) node_of.push_back(p / size);
  return node_of;
}

class AlgorithmAtScale : public testing::TestWithParam<const Algorithm*> {};

// Only 40 ranks have parts, so that flat algorithms need not send 9 million messages.
void play_at_scale(const Algorithm& algorithm, Case c) {
  if (&algorithm == &two_level && c.node_of.empty()) return;  // then it is pairwise
  const Task task = c.task(0);
  if (!refusal_of(algorithm, task).empty()) return;
  const std::string wrong = play(algorithm, c, reduces(c.kind) && !algorithm.reproducible(task));
  ASSERT_TRUE(wrong.empty()) << wrong.substr(0, 1000);
}

TEST_P(AlgorithmAtScale, IsRight) {
  for (const int ranks : {1024, 1100})
    for (int kind = 0; kind < kCollectives; ++kind) {
      Case c{.kind = Collective(kind), .ranks = ranks, .count = 640, .root = 77, .equal = true};
      // There are P^2 blocks.
      if (c.kind == Collective::all_to_all) c.ranks = ranks / 4, c.count = 640;
      // A flat pairwise barrier is P^2 messages, whatever the count.
      if (c.kind == Collective::barrier && ranks > 1024 && GetParam() == &pairwise) continue;
      play_at_scale(*GetParam(), c);
    }
}

INSTANTIATE_TEST_SUITE_P(Algorithms, AlgorithmAtScale,
                         testing::ValuesIn(algorithms().begin(), algorithms().end()),
                         name_of_instance);

TEST(TwoLevelAtScale, IsRight) {
  for (const int size : {3, 8, 56})
    for (const Collective kind : {Collective::allreduce, Collective::reduce_scatter,
                                  Collective::allgather, Collective::all_to_all})
      for (const bool ordered : {false, true}) {
        const bool blocks = kind == Collective::all_to_all;
        if (ordered && !reduces(kind)) continue;
        const int ranks = blocks ? 400 : size == 8 ? 1024 : 900;
        play_at_scale(two_level, {.kind = kind,
                                  .ranks = ranks,
                                  .count = size_t{1000},
                                  .ordered = ordered,
                                  .equal = true,
                                  .node_of = nodes_of_size(ranks, size)});
      }
}

// The traffic of a node's ranks with other nodes.
struct LinkLoad {
  size_t rounds = 0;              // most rounds of a rank
  size_t sent = 0, received = 0;  // most messages of a rank
  double out = 0, in = 0;         // elements of the node
};

// Expects at most so many elements each way, and messages of a rank.
void expect_at_most(const LinkLoad& load, double elements, double messages) {
  EXPECT_LE(load.out, elements);
  EXPECT_LE(load.in, elements);
  EXPECT_LE(double(load.sent), messages);
  EXPECT_LE(double(load.received), messages);
}

LinkLoad load_of(const Algorithm& algorithm, Task task, int node) {
  const NodeTable table(task);
  LinkLoad load;
  for (const int rank : table.ranks_of(node)) {
    task.rank = rank;
    const Schedule schedule = make_schedule(algorithm, task);
    size_t sent = 0, received = 0;
    for (const Round& round : schedule.rounds) {
      for (const Message& m : round.sends)
        if (table.node(m.peer) != node) ++sent, load.out += static_cast<double>(m.block.count());
      for (const Message& m : round.receives)
        if (table.node(m.peer) != node) ++received, load.in += static_cast<double>(m.block.count());
    }
    load.rounds = std::max(load.rounds, schedule.rounds.size());
    load.sent = std::max(load.sent, sent), load.received = std::max(load.received, received);
  }
  return load;
}

struct Job {
  int ranks, size;
  int nodes() const { return (ranks + size - 1) / size; }
  Task task(Collective kind, bool ordered) const {
    Task task = balanced_task(kind, 0, ranks, static_cast<size_t>(ranks) * 16);
    task.ordered = ordered, task.node_of = nodes_of_size(ranks, size);
    if (kind == Collective::all_to_all)
      task.sends = task.receives = task.parts, task.equal_blocks = true;
    return task;
  }
};

std::vector<Job> jobs() {
  std::vector<Job> all;
  for (const int size : {1, 3, 8, 56})
    for (const int ranks : {2 * size, 16 * size, 1000, 3000, 16384 / size * size, 16384})
      if (ranks > size) all.push_back({ranks, size});
  return all;
}

double log2_up(int n) { return std::bit_width(static_cast<unsigned>(n) - 1U); }

// Whether a task goes in rows: halving between nodes, rather than a message to each.
bool in_rows(const NodeTable& table, bool ordered) {
  return table.equal() && table.nodes() > 64 &&
         (!ordered || std::has_single_bit(static_cast<unsigned>(table.size(0))));
}

// A node sends and receives the vector about once each way, and a rank about one message for each
// node and sum, or a logarithm of that number. Where the order of sums requires it, a node has up
// to 2 log2 l sums.
TEST(TwoLevelAtScale, LoadsANodesLinkOnce) {
  for (const Job& job : jobs())
    for (const Collective kind : {Collective::reduce_scatter, Collective::allgather})
      for (const bool ordered : {false, true})
        for (const int node : {0, job.nodes() / 2, job.nodes() - 1}) {
          const Task task = job.task(kind, ordered);
          const NodeTable table(task);
          const LinkLoad load = load_of(two_level, task, node);
          SCOPED_TRACE(fmt::format("{} of {} ranks, {} a node, {}, node {} of {}", name_of(kind),
                                   job.ranks, job.size, ordered ? "ordered" : "any order", node,
                                   table.nodes()));
          const double whole = static_cast<double>(task.count);
          const double own = whole * table.size(node) / job.ranks;
          if (in_rows(table, ordered && reduces(kind))) {
            EXPECT_LE(load.rounds, log2_up(table.nodes()) + 2);
            const double halves = table.size(node) * log2_up(table.nodes());  // rounded
            expect_at_most(load, whole + own + halves, 2 * log2_up(table.nodes()) + 4);
            continue;
          }
          const double sums = reduces(kind) && ordered && job.size > 1 ? 2 * log2_up(job.size) : 1;
          const double most = sums * (std::ceil(double(job.ranks) / table.size(node)) + 1);
          EXPECT_LE(load.rounds, 2u);
          // Sums leave a node as gathered vectors enter it.
          const bool out = reduces(kind);
          EXPECT_LE(out ? load.out : load.in, sums * (whole - own));
          EXPECT_LE(out ? load.in : load.out, sums * own * (table.nodes() - 1));
          EXPECT_LE(double(out ? load.sent : load.received), most);
          EXPECT_LE(double(out ? load.received : load.sent), sums * (table.nodes() - 1));
        }
}

// Takes the algorithm from the built-in table. The fewest elements between nodes are the vector
// without the node's own part; this one may send two parts a rank more.
TEST(TwoLevelAtScale, ManyEqualNodesSendTheVectorOnceInFewMessages) {
  for (const Job& job : {Job{16383, 3}, Job{3000, 3}, Job{1024, 8}, Job{16384, 8}, Job{16352, 56}})
    for (const Collective kind : {Collective::reduce_scatter, Collective::allgather})
      for (const bool cards : {false, true})
        for (const int node : {0, job.nodes() / 2, job.nodes() - 1}) {
          Task task = job.task(kind, false);
          for (int p = 0; p < job.ranks && cards; ++p)
            task.node_of[static_cast<size_t>(p)] = p % job.nodes();
          const std::string algorithm = Selection().choose(task, sizeof(float));
          const LinkLoad load = load_of(algorithm_named(algorithm), task, node);
          SCOPED_TRACE(fmt::format("{} by {} of {} ranks, {} a node{}, node {}", name_of(kind),
                                   algorithm, job.ranks, job.size, cards ? " like cards" : "",
                                   node));
          const double own = static_cast<double>(task.count) / job.nodes();
          const double least = static_cast<double>(task.count) - own;
          const double halves = job.size * log2_up(job.nodes());  // rounded
          expect_at_most(load, least + 2 * own + halves, 2 * log2_up(job.nodes()) + 4);
        }
}

TEST(TwoLevelAtScale, AllreduceSendsAFewTimesTheVectorInFewMessages) {
  for (const Job& job : jobs())
    for (const int node : {0, job.nodes() / 2, job.nodes() - 1}) {
      const Task task = job.task(Collective::allreduce, false);
      const NodeTable table(task);
      const LinkLoad load = load_of(two_level, task, node);
      SCOPED_TRACE(fmt::format("{} ranks, {} a node, node {} of {}", job.ranks, job.size, node,
                               table.nodes()));
      const double whole = static_cast<double>(task.count);
      EXPECT_LE(load.rounds, 2 * log2_up(table.nodes()) + 4);
      const double direct = 2 * (std::ceil(double(job.ranks) / table.size(node)) + 1);
      const double most = table.equal() && table.nodes() > 16 ? 4 * log2_up(table.nodes()) : direct;
      expect_at_most(load, 3 * whole, most);
    }
}

TEST(TwoLevelAtScale, AllToAllSendsAMessageANode) {
  for (const Job& job : jobs()) {
    if (job.ranks > 3000) continue;  // O(P) steps each, for 56 ranks
    const Task task = job.task(Collective::all_to_all, false);
    const NodeTable table(task);
    const LinkLoad load = load_of(two_level, task, 0);
    const double away = static_cast<double>(task.count) * (job.ranks - job.size);
    EXPECT_LE(load.rounds, 2u);
    EXPECT_EQ(load.out, away * job.size / job.ranks);
    EXPECT_EQ(load.in, away * job.size / job.ranks);
    EXPECT_LE(double(load.sent), std::ceil(double(job.ranks) / job.size) + 1);
    EXPECT_LE(load.received, static_cast<size_t>(table.nodes() - 1));
  }
}

// Algorithms for small vectors send few messages, however many ranks there are.
TEST(AlgorithmsAtScale, SmallOnesAreLogarithmic) {
  struct Small {
    const Algorithm& algorithm;
    Collective kind;
  };
  for (const auto& [algorithm, kind] :
       {Small{recursive_doubling, Collective::allreduce},
        Small{recursive_doubling, Collective::barrier},
        Small{recursive_doubling, Collective::allgather}, Small{bruck, Collective::all_to_all},
        Small{binomial, Collective::broadcast}, Small{binomial, Collective::reduce},
        Small{binomial, Collective::gather}, Small{binomial, Collective::scatter},
        Small{recursive_halving, Collective::allreduce},
        Small{recursive_halving, Collective::reduce_scatter}})
    for (const int ranks : {56, 1000, 3000, 16384})
      for (const int rank : {0, 1, ranks / 2, ranks - 1}) {
        Task task = Job{ranks, 1}.task(kind, true);
        task.rank = rank;
        const Schedule schedule = make_schedule(algorithm, task);
        size_t messages = 0;
        for (const Round& round : schedule.rounds)
          messages += std::max(round.sends.size(), round.receives.size());
        EXPECT_LE(double(messages), 2 * log2_up(ranks) + 4)
            << algorithm.name << " " << name_of(kind) << " rank " << rank << " of " << ranks;
      }
}

// The formulas look at a few ranks only; this test looks at all of them.
TEST(AlgorithmsAtScale, FormulasFindTheBusiestRank) {
  for (const Algorithm* algorithm : algorithms())
    for (int kind = 0; kind < kCollectives; ++kind)
      for (const Job& job : {Job{65, 1}, Job{65, 7}, Job{96, 1}, Job{130, 1}, Job{130, 7},
                             Job{300, 1}, Job{300, 7}, Job{195, 3}, Job{256, 2}, Job{288, 2}}) {
        const int ranks = job.ranks;
        Task task = job.task(Collective(kind), job.size == 1);
        if (!refusal_of(*algorithm, task).empty()) continue;
        const Steps formula = algorithm->steps(task);
        Steps most;
        for (task.rank = 0; task.rank < ranks; ++task.rank) {
          const Steps steps = count_steps(make_schedule(*algorithm, task));
          most = {std::max(most.rounds, steps.rounds), std::max(most.moved, steps.moved),
                  std::max(most.reduced, steps.reduced)};
        }
        SCOPED_TRACE(fmt::format("{} {} {} ranks, {} a node", algorithm->name, name_of(task.kind),
                                 ranks, job.size));
        EXPECT_EQ(formula.rounds, most.rounds);
        EXPECT_EQ(formula.moved, most.moved);
        EXPECT_EQ(formula.reduced, most.reduced);
      }
}

}  // namespace
}  // namespace tutti::comm
