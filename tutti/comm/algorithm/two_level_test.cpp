#include <gtest/gtest.h>

#include <algorithm>

#include "tutti/comm/algorithm/nodes.h"
#include "tutti/comm/algorithm/played_case.h"

namespace tutti::comm {
namespace {

using NodeOf = std::vector<int>;

NodeOf blocks_of(const std::vector<int>& sizes) {
  NodeOf node_of;
  for (size_t k = 0; k < sizes.size(); ++k)
    node_of.insert(node_of.end(), static_cast<size_t>(sizes[k]), static_cast<int>(k));
  return node_of;
}

NodeOf equal_nodes(int nodes, int size) {
  return blocks_of(std::vector<int>(static_cast<size_t>(nodes), size));
}

// Deals ranks out to nodes like cards, `neighbours` ranks at a time.
NodeOf cyclic(int nodes, int size, int neighbours = 1) {
  NodeOf node_of;
  for (int p = 0; p < nodes * size; ++p) node_of.push_back(p / neighbours % nodes);
  return node_of;
}

// Up to 9 nodes of up to 7 ranks, uneven ones, and ranks that are not neighbours.
std::vector<NodeOf> placements() {
  std::vector<NodeOf> all{blocks_of({3, 1}),
                          blocks_of({1, 3}),
                          blocks_of({5, 2, 1}),
                          blocks_of({1, 1, 6}),
                          blocks_of({2, 7, 2, 3}),
                          blocks_of({4, 4, 3}),
                          cyclic(2, 2),
                          cyclic(3, 3),
                          cyclic(2, 5),
                          cyclic(5, 4),
                          cyclic(3, 4, 2),
                          cyclic(2, 6, 3),
                          {0, 1, 1, 0, 2},
                          {0, 1, 0, 0, 1, 2, 0}};
  for (int nodes = 1; nodes <= 9; ++nodes)
    for (int size = 1; size <= 7; ++size) all.push_back(equal_nodes(nodes, size));
  return all;
}

Case case_of(Collective kind, const NodeOf& node_of, size_t count) {
  return {
      .kind = kind, .ranks = static_cast<int>(node_of.size()), .count = count, .node_of = node_of};
}

TEST(TwoLevel, AnyNodesAndCounts) {
  for (const NodeOf& nodes : placements())
    for (const Collective kind : {Collective::allreduce, Collective::reduce_scatter,
                                  Collective::allgather, Collective::all_to_all})
      for (const size_t count : {size_t{0}, size_t{1}, nodes.size() - 1, size_t{197}})
        for (const bool equal : {false, true}) {
          Case c = case_of(kind, nodes, count);
          c.equal = equal;
          expect_right(two_level, c);
          if (!reduces(kind)) continue;
          c.ordered = true;
          ASSERT_TRUE(two_level.reproducible(c.task(0)));
          expect_right(two_level, c);
        }
}

TEST(TwoLevel, WideMeanInPlaceAndShared) {
  for (const NodeOf& nodes : placements())
    for (const Collective kind :
         {Collective::allreduce, Collective::reduce_scatter, Collective::allgather})
      for (const bool wide : {false, true})
        for (const bool ordered : {false, true})
          for (const bool apart : {false, true}) {
            Case c = case_of(kind, nodes, 101);
            c.wide = wide, c.mean = true, c.ordered = ordered;
            c.in_place = !apart && kind == Collective::allreduce;
            c.shared_output = apart && kind != Collective::reduce_scatter;
            expect_right(two_level, c);
          }
}

// One to three replicas a rank.
std::vector<int> leaves_for(size_t ranks, size_t seed) {
  std::vector<int> first{0};
  for (size_t p = 0; p < ranks; ++p)
    first.push_back(first.back() + static_cast<int>((p * 7 + seed * 5) % 3) + 1);
  return first;
}

// More nodes than a rank sends direct messages to: a reduce_scatter and an allgather go in rows.
std::vector<NodeOf> many_equal_nodes() {
  std::vector<NodeOf> all;
  for (const int nodes : {65, 96, 128})
    for (const int size : {1, 2, 3})
      all.push_back(equal_nodes(nodes, size)), all.push_back(cyclic(nodes, size));
  all.push_back(cyclic(70, 4, 2));
  return all;
}

// Parts of equal and of different sizes, and fewer elements than ranks: then some parts are empty.
TEST(TwoLevel, ManyEqualNodes) {
  for (const NodeOf& nodes : many_equal_nodes())
    for (const Collective kind : {Collective::reduce_scatter, Collective::allgather})
      for (const size_t count : {size_t{0}, size_t{1}, size_t{60}, 5 * nodes.size() + 3})
        for (const bool equal : {false, true})
          for (const bool ordered : {false, true}) {
            Case c = case_of(kind, nodes, count);
            c.equal = equal, c.ordered = ordered;
            // Where nodes do not follow the order, each has many sums, and the play takes long.
            if (ordered && (!reduces(kind) || count != 60)) continue;
            ASSERT_TRUE(!ordered || two_level.reproducible(c.task(0)));
            expect_right(two_level, c);
          }
}

TEST(TwoLevel, ManyEqualNodesWideMeanSharedAndSeveralParts) {
  for (const NodeOf& nodes : {equal_nodes(65, 4), cyclic(96, 2), equal_nodes(128, 3)})
    for (const Collective kind : {Collective::reduce_scatter, Collective::allgather})
      for (const bool ordered : {false, true})
        for (const bool other : {false, true}) {
          Case c = case_of(kind, nodes, 1201);
          c.wide = true, c.mean = other, c.ordered = ordered;
          c.shared_output = other && kind == Collective::allgather;
          expect_right(two_level, c);
          if (!other || !reduces(kind)) continue;
          c.first = leaves_for(nodes.size(), 1);
          expect_right(two_level, c);
        }
}

// The long vector has elements between the parts (Task::gaps), or one rank has nearly all elements.
TEST(TwoLevel, ManyEqualNodesWithOneLargePartOrWithGaps) {
  for (const Collective kind : {Collective::reduce_scatter, Collective::allgather})
    for (const bool gaps : {false, true}) {
      const Case c = case_of(kind, equal_nodes(70, 2), 1000);
      const auto with_parts = [&](int rank) {
        Task task = c.task(rank);
        task.gaps = gaps;
        for (size_t p = 0; p < task.parts.size(); ++p)
          task.parts[p] = gaps ? Slice{7 * p, 5} : Slice{p <= 5 ? 0U : 1000U, p == 5 ? 1000U : 0U};
        return task;
      };
      std::vector<Schedule> schedules;
      std::vector<Board> boards(140);
      for (int rank = 0; rank < 140; ++rank) {
        const Task task = with_parts(rank);
        schedules.push_back(make_schedule(two_level, task));
        Board& board = boards[static_cast<size_t>(rank)];
        const size_t part = task.part().count;
        const bool scatter = kind == Collective::reduce_scatter;
        board.output.assign(scatter ? part : 1000, -1);
        for (size_t i = 0; i < (scatter ? 1000 : part); ++i)
          board.input.push_back(float(scatter ? i : task.part().begin + i));
      }
      ASSERT_EQ(Game(std::move(schedules), boards).play(), "");
      for (int rank = 0; rank < 140; ++rank) {
        const std::vector<float>& output = boards[static_cast<size_t>(rank)].output;
        const Slice mine = with_parts(rank).part();
        for (size_t i = 0; i < mine.count && reduces(kind); ++i)
          ASSERT_EQ(output[i], 140 * float(mine.begin + i)) << rank;
        for (size_t i = 0; i < output.size() && !reduces(kind); ++i)
          ASSERT_EQ(output[i], !gaps || (i < 980 && i % 7 < 5) ? float(i) : -1) << rank;
      }
    }
}

TEST(TwoLevel, SeveralPartsOfARank) {
  for (const NodeOf& nodes : placements())
    for (const Collective kind : {Collective::allreduce, Collective::reduce_scatter})
      for (const size_t seed : {0, 1, 2})
        for (const bool ordered : {false, true}) {
          Case c = case_of(kind, nodes, 67);
          c.first = leaves_for(nodes.size(), seed);
          c.ordered = ordered, c.wide = seed == 1, c.mean = seed == 2;
          c.shared_output = seed == 0 && kind == Collective::allreduce;
          expect_right(two_level, c);
        }
}

// Flat algorithms do not depend on where ranks are.
TEST(TwoLevel, OthersAreRightOnNodesToo) {
  for (const NodeOf& nodes : {blocks_of({3, 1}), blocks_of({5, 2, 1}), cyclic(3, 3)})
    for (const Algorithm* algorithm : algorithms())
      for (int kind = 0; kind < kCollectives; ++kind) {
        Case c = case_of(Collective(kind), nodes, 67);
        expect_right(*algorithm, c);
        c.equal = c.ordered = true;
        expect_right(*algorithm, c);
      }
}

TEST(TwoLevel, SaysWhenItIsInOrderAndWhatItDoesNotDo) {
  const auto task = [](Collective kind, const NodeOf& nodes) {
    return case_of(kind, nodes, 100).task(0);
  };
  EXPECT_TRUE(two_level.reproducible(task(Collective::allreduce, equal_nodes(3, 4))));
  EXPECT_TRUE(two_level.reproducible(task(Collective::allreduce, blocks_of({4, 4, 3}))));
  EXPECT_FALSE(two_level.reproducible(task(Collective::allreduce, equal_nodes(3, 3))));
  EXPECT_FALSE(two_level.reproducible(task(Collective::allreduce, cyclic(2, 2))));
  EXPECT_TRUE(two_level.reproducible(task(Collective::allgather, cyclic(2, 2))));

  Task shared = task(Collective::allreduce, cyclic(2, 2));
  shared.shared_output = true;
  EXPECT_NE(refusal_of(pairwise, shared), "");
  EXPECT_EQ(refusal_of(two_level, shared), "");
  shared.node_of.clear();
  EXPECT_EQ(refusal_of(pairwise, shared), "");

  EXPECT_NE(refusal_of(two_level, task(Collective::all_to_all, equal_nodes(2, 2))), "");
  EXPECT_NE(refusal_of(bruck, task(Collective::all_to_all, equal_nodes(2, 2))), "");

  Task ordered = task(Collective::allreduce, cyclic(2, 2));
  EXPECT_EQ(two_level.drawback(ordered), "");
  ordered.ordered = true;
  EXPECT_NE(two_level.drawback(ordered), "");
  ordered.node_of = cyclic(2, 2, 2);
  EXPECT_EQ(two_level.drawback(ordered), "");
}

TEST(Nodes, WorkIsDealtOutEvenlyAndBothSidesAgree) {
  for (const NodeOf& nodes : placements())
    for (const bool equal : {false, true}) {
      Case c = case_of(Collective::allgather, nodes, 16 * nodes.size());
      c.equal = equal;
      const Task task = c.task(0);
      const NodeTable table(task);
      std::vector<std::vector<std::vector<int>>> dealt;
      for (int k = 0; k < table.nodes(); ++k) {
        dealt.push_back(dealt_on(table, task.parts, k));
        size_t least = task.count, most = 0;
        for (const std::vector<int>& some : dealt.back()) {
          least = std::min(least, some.size());
          most = std::max(most, some.size());
        }
        EXPECT_TRUE(!equal || most <= least + 1) << c.name() << " node " << k;
      }
      for (int q = 0; q < c.ranks; ++q) {
        const std::vector<int> workers = workers_of(table, task.parts, q);
        for (int k = 0; k < table.nodes(); ++k) {
          if (k == table.node(q)) continue;
          const auto ranks = table.ranks_of(k);
          const auto place = static_cast<size_t>(
              std::ranges::find(ranks, workers[static_cast<size_t>(k)]) - ranks.begin());
          ASSERT_LT(place, ranks.size());
          EXPECT_TRUE(std::ranges::count(dealt[static_cast<size_t>(k)][place], q) == 1)
              << c.name() << " rank " << q << " node " << k;
        }
      }
    }
}

// Compares the formula with the schedules.
TEST(TwoLevel, CostsWhatItsFormulaSays) {
  std::vector<NodeOf> all = placements();
  for (const int nodes : {65, 70, 96, 128, 130})
    for (const int size : {1, 2, 4})
      all.push_back(equal_nodes(nodes, size)), all.push_back(cyclic(nodes, size));
  for (const NodeOf& nodes : all)
    for (const Collective kind : {Collective::allreduce, Collective::reduce_scatter,
                                  Collective::allgather, Collective::all_to_all})
      for (const bool ordered : {false, true}) {
        Case c = case_of(kind, nodes, nodes.size() * 16 * 8);
        c.equal = true, c.ordered = ordered && reduces(kind);
        const Task task = c.task(0);
        const Steps formula = two_level.steps(task);
        const Steps worst = count_busiest(
            [](const Task& of_rank) { return make_schedule(two_level, of_rank); }, task);
        EXPECT_EQ(formula.rounds, nodes.size() == 1 ? formula.rounds : worst.rounds) << c.name();
        EXPECT_EQ(formula.moved, worst.moved) << c.name();
        EXPECT_EQ(formula.reduced, worst.reduced) << c.name();
      }
}

}  // namespace
}  // namespace tutti::comm
