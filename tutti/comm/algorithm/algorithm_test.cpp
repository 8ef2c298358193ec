#include "tutti/comm/algorithm/algorithm.h"

#include <gtest/gtest.h>

#include <bit>
#include <numeric>

#include "tutti/base/error.h"
#include "tutti/base/rng.h"
#include "tutti/comm/algorithm/play.h"
#include "tutti/comm/tree.h"

namespace tutti::comm {
namespace {

// A task of every rank and the memory that goes with it.
struct Case {
  Collective kind;
  int ranks;
  size_t count;
  int root = 0;
  bool in_place = false;
  bool wide = false;
  bool mean = false;
  std::vector<int> nodes = {};

  Task task(int rank) const {
    Task task;
    task.kind = kind, task.rank = rank, task.ranks = ranks, task.root = root, task.count = count;
    task.wide = wide, task.mean = mean, task.nodes = nodes;
    // Uneven on purpose: part p has p+1 shares.
    const auto n = static_cast<size_t>(ranks);
    size_t begin = 0;
    for (size_t p = 0; p < n; ++p) {
      const size_t end = count * (p + 1) * (p + 2) / (n * (n + 1));
      task.parts.push_back({begin, end - begin});
      begin = end;
    }
    if (kind == Collective::all_to_all) {
      size_t sent = 0, received = 0;
      for (int q = 0; q < ranks; ++q) {
        task.sends.push_back({sent, block(rank, q)});
        task.receives.push_back({received, block(q, rank)});
        sent += block(rank, q), received += block(q, rank);
      }
    }
    return task;
  }
  size_t block(int from, int to) const {
    return (count + static_cast<size_t>(3 * from + 5 * to)) % 17 % (count + 1);
  }

  // Values that are exact in bf16, of different sizes, so that another order gives other bits in
  // f32.
  static float value(int rank, size_t i) {
    Rng rng(7, Purpose::test, static_cast<uint64_t>(rank) << 32 | i);
    return static_cast<float>(
        bf16(rng.normal() * std::ldexp(1.0f, static_cast<int>(rng.below(12)))));
  }
};

size_t end_of(const std::vector<Slice>& slices) { return slices.empty() ? 0 : slices.back().end(); }

Board board_of(const Case& c, const Task& task) {
  Board board;
  board.wide = c.wide;
  board.in_place = c.in_place;
  size_t in = c.count, out = c.count;
  if (c.kind == Collective::allgather || c.kind == Collective::gather) in = task.part().count;
  if (c.kind == Collective::reduce_scatter || c.kind == Collective::scatter)
    out = task.part().count;
  if (c.kind == Collective::all_to_all) in = end_of(task.sends), out = end_of(task.receives);
  if (c.kind == Collective::barrier) in = out = 0;
  if (c.kind == Collective::reduce && task.rank != c.root) out = 0;  // only the root has one
  if (c.kind == Collective::gather && task.rank != c.root) out = 0;
  if (c.kind == Collective::scatter && task.rank != c.root) in = 0;
  if (c.kind == Collective::broadcast && task.rank != c.root) in = 0;
  board.output.assign(out, std::nanf(""));
  board.input.resize(in);
  for (size_t i = 0; i < in; ++i) board.input[i] = Case::value(task.rank, i);
  if (c.in_place) board.output = board.input;
  return board;
}

// The sum of element i in the order of the tree.
float tree_sum(const Case& c, Range node, size_t i) {
  if (node.size() == 1) return Case::value(node.lo, i);
  const int mid = split_point(node);
  return tree_sum(c, {node.lo, mid}, i) + tree_sum(c, {mid, node.hi}, i);
}

float expected_sum(const Case& c, size_t i) {
  float sum = tree_sum(c, {0, c.ranks}, i);
  if (c.mean) sum /= static_cast<float>(c.ranks);
  return c.wide ? static_cast<float>(bf16(sum)) : sum;
}

// What the whole long vector is after allgather and gather, before scatter: rank p's part comes
// from p.
void expect_output(const Case& c, const Task& task, const Board& board, bool exact) {
  const auto same = [&](float got, float want, size_t i) {
    if (exact)
      ASSERT_EQ(std::bit_cast<uint32_t>(got), std::bit_cast<uint32_t>(want))
          << "rank " << task.rank << " element " << i << ": " << got << " for " << want;
    else
      ASSERT_NEAR(got, want, 1e-2 * (std::abs(want) + 100))
          << "rank " << task.rank << " element " << i;
  };
  const Slice mine = task.part();
  switch (c.kind) {
    case Collective::barrier: return;
    case Collective::broadcast:
      for (size_t i = 0; i < c.count; ++i) same(board.output[i], Case::value(c.root, i), i);
      return;
    case Collective::reduce:
      if (task.rank != c.root) return;
      [[fallthrough]];
    case Collective::allreduce:
      for (size_t i = 0; i < c.count; ++i) same(board.output[i], expected_sum(c, i), i);
      return;
    case Collective::reduce_scatter:
      for (size_t i = 0; i < mine.count; ++i)
        same(board.output[i], expected_sum(c, mine.begin + i), i);
      return;
    case Collective::gather:
      if (task.rank != c.root) return;
      [[fallthrough]];
    case Collective::allgather:
      for (int p = 0; p < c.ranks; ++p)
        for (size_t i = 0; i < task.parts[size_t(p)].count; ++i)
          same(board.output[task.parts[size_t(p)].begin + i], Case::value(p, i), i);
      return;
    case Collective::scatter:
      for (size_t i = 0; i < mine.count; ++i)
        same(board.output[i], Case::value(c.root, mine.begin + i), i);
      return;
    case Collective::all_to_all:
      for (int p = 0; p < c.ranks; ++p) {
        size_t begin = 0;  // where p's block for me begins in p's input
        for (int q = 0; q < task.rank; ++q) begin += c.block(p, q);
        for (size_t i = 0; i < task.receives[size_t(p)].count; ++i)
          same(board.output[task.receives[size_t(p)].begin + i], Case::value(p, begin + i), i);
      }
      return;
  }
}

void check(const Algorithm& algorithm, const Case& c) {
  if (!refusal_of(algorithm, c.task(0)).empty()) return;
  SCOPED_TRACE(std::string(algorithm.name) + " " + std::string(name_of(c.kind)) + " ranks " +
               std::to_string(c.ranks) + " count " + std::to_string(c.count) + " root " +
               std::to_string(c.root) + (c.wide ? " wide" : "") + (c.mean ? " mean" : "") +
               (c.in_place ? " in place" : ""));
  std::vector<Schedule> schedules;
  std::vector<Board> boards;
  for (int rank = 0; rank < c.ranks; ++rank) {
    schedules.push_back(make_schedule(algorithm, c.task(rank)));
    boards.push_back(board_of(c, c.task(rank)));
  }
  ASSERT_TRUE(Game(schedules, boards).play()) << "stuck\n" << to_string(schedules[0]);
  const bool exact = !reduces(c.kind) || algorithm.reproducible(c.task(0));
  for (int rank = 0; rank < c.ranks; ++rank)
    expect_output(c, c.task(rank), boards[size_t(rank)], exact);
}

class EveryAlgorithm : public testing::TestWithParam<const Algorithm*> {};

TEST_P(EveryAlgorithm, DoesWhatItSays) {
  for (int kind = 0; kind < kCollectives; ++kind)
    for (const int ranks : {1, 2, 3, 4, 5, 6, 7, 8, 9, 13, 16})
      for (const size_t count : {0, 1, 3, 509})
        for (const int root : {0, ranks / 2, ranks - 1})
          check(*GetParam(),
                {.kind = Collective(kind), .ranks = ranks, .count = count, .root = root});
}

TEST_P(EveryAlgorithm, WideAndMeanAndInPlace) {
  for (const Collective kind :
       {Collective::allreduce, Collective::reduce_scatter, Collective::reduce})
    for (int ranks = 1; ranks <= 9; ++ranks)
      for (const bool wide : {false, true})
        for (const bool mean : {false, true})
          for (const bool in_place : {false, true})
            if (!in_place || kind == Collective::allreduce)
              check(*GetParam(), {.kind = kind,
                                  .ranks = ranks,
                                  .count = 301,
                                  .root = ranks - 1,
                                  .in_place = in_place,
                                  .wide = wide,
                                  .mean = mean});
}

TEST_P(EveryAlgorithm, FollowsNodes) {
  for (const int size : {1, 2, 3, 4})
    for (const int count : {1, 2, 3, 5}) {
      Case c{.kind = Collective::allreduce, .ranks = size * count, .count = 1021};
      for (int k = 0; k <= count; ++k) c.nodes.push_back(k * size);
      check(*GetParam(), c);
      c.wide = c.mean = true;
      check(*GetParam(), c);
    }
}

// Large enough for several segments in the double tree.
TEST_P(EveryAlgorithm, LargeVectors) {
  for (const int ranks : {2, 3, 4, 7, 8})
    check(*GetParam(), {.kind = Collective::allreduce, .ranks = ranks, .count = 100003});
}

// The formula against the schedules: the most that any rank does.
TEST_P(EveryAlgorithm, CostsWhatItsFormulaSays) {
  for (int kind = 0; kind < kCollectives; ++kind)
    for (const int ranks : {1, 2, 3, 4, 6, 8, 12, 16}) {
      Case c{.kind = Collective(kind), .ranks = ranks, .count = size_t(48) * 16 * 16, .root = 0};
      Task task = c.task(0);
      task.parts = balanced_parts(c.count, ranks);
      if (c.kind == Collective::all_to_all) task.sends = task.receives = task.parts;
      if (!refusal_of(*GetParam(), task).empty()) continue;
      const Steps formula = GetParam()->steps(task);
      const Steps worst = count_busiest(
          [](const Task& of_rank) { return make_schedule(*GetParam(), of_rank); }, task);
      SCOPED_TRACE(std::string(GetParam()->name) + " " + std::string(name_of(c.kind)) + " ranks " +
                   std::to_string(ranks));
      EXPECT_EQ(formula.moved, worst.moved);
      if (ranks == 1) continue;
      EXPECT_EQ(formula.rounds, worst.rounds);
      EXPECT_EQ(formula.reduced, worst.reduced);
    }
}

INSTANTIATE_TEST_SUITE_P(Algorithms, EveryAlgorithm,
                         testing::ValuesIn(algorithms().begin(), algorithms().end()),
                         [](const testing::TestParamInfo<const Algorithm*>& info) {
                           return std::string(info.param->name);
                         });

TEST(Algorithms, EveryCollectiveHasOne) {
  for (int kind = 0; kind < kCollectives; ++kind) {
    bool found = false;
    for (const Algorithm* algorithm : algorithms())
      found |= refusal_of(*algorithm, Case{Collective(kind), 5, 100}.task(0)).empty();
    EXPECT_TRUE(found) << name_of(Collective(kind));
  }
}

TEST(Algorithms, TasksThatCannotBe) {
  Task task = Case{Collective::allgather, 4, 100}.task(0);
  task.parts[2].count += 1;
  EXPECT_THROW(make_schedule(ring, task), CommError);
  task = Case{Collective::broadcast, 4, 100}.task(0);
  task.root = 4;
  EXPECT_THROW(make_schedule(binomial, task), CommError);
  EXPECT_THROW(make_schedule(ring, Case{Collective::broadcast, 4, 100}.task(0)), CommError);
  Case uneven{Collective::allreduce, 5, 100};
  uneven.nodes = {0, 2, 5};
  EXPECT_THROW(make_schedule(two_level, uneven.task(0)), CommError);
  EXPECT_THROW(algorithm_named("rings"), ConfigError);
}

TEST(Schedule, BalancedPartsTileOnCacheLines) {
  for (const size_t count : {0, 1, 15, 16, 17, 1000, 1000003})
    for (const int ranks : {1, 2, 3, 7, 64}) {
      size_t end = 0;
      for (const Slice& part : balanced_parts(count, ranks)) {
        EXPECT_EQ(part.begin, end);
        EXPECT_TRUE(part.begin % 16 == 0 || part.begin == count);
        end = part.end();
      }
      EXPECT_EQ(end, count);
    }
}

TEST(Schedule, Prints) {
  const std::string text =
      to_string(make_schedule(ring, Case{Collective::allreduce, 2, 32}.task(0)));
  EXPECT_NE(text.find("round 0: receive"), std::string::npos) << text;
  EXPECT_NE(text.find("output[0..9] = "), std::string::npos) << text;
}

}  // namespace
}  // namespace tutti::comm
