#include "tutti/comm/algorithm/algorithm.h"

#include <gtest/gtest.h>

#include "tutti/base/error.h"
#include "tutti/base/expect_text.h"
#include "tutti/comm/algorithm/played_case.h"

namespace tutti::comm {
namespace {

class EveryAlgorithm : public testing::TestWithParam<const Algorithm*> {};

TEST_P(EveryAlgorithm, DoesWhatItSays) {
  for (int kind = 0; kind < kCollectives; ++kind)
    for (const int ranks : {1, 2, 3, 4, 5, 6, 7, 8, 9, 13, 16})
      for (const size_t count : {0, 1, 3, 509})
        for (const int root : {0, ranks / 2, ranks - 1})
          for (const bool equal : {false, true})
            expect_right(*GetParam(), {.kind = Collective(kind),
                                       .ranks = ranks,
                                       .count = count,
                                       .root = root,
                                       .equal = equal});
}

TEST_P(EveryAlgorithm, WideAndMeanAndInPlace) {
  for (const Collective kind :
       {Collective::allreduce, Collective::reduce_scatter, Collective::reduce})
    for (int ranks = 1; ranks <= 9; ++ranks)
      for (const bool wide : {false, true})
        for (const bool mean : {false, true})
          for (const bool in_place : {false, true})
            if (!in_place || kind == Collective::allreduce)
              expect_right(*GetParam(), {.kind = kind,
                                         .ranks = ranks,
                                         .count = 301,
                                         .root = ranks - 1,
                                         .in_place = in_place,
                                         .wide = wide,
                                         .mean = mean});
}

// Large enough for several segments in the double tree.
TEST_P(EveryAlgorithm, LargeVectors) {
  for (const int ranks : {2, 3, 4, 7, 8})
    expect_right(*GetParam(), {.kind = Collective::allreduce, .ranks = ranks, .count = 100003});
}

// Compares the formula with the schedules: the most that any rank does.
TEST_P(EveryAlgorithm, CostsWhatItsFormulaSays) {
  for (int kind = 0; kind < kCollectives; ++kind)
    for (const int ranks : {1, 2, 3, 4, 6, 8, 12, 16}) {
      const Case c{
          .kind = Collective(kind), .ranks = ranks, .count = size_t(48) * 16 * 16, .equal = true};
      const Task task = c.task(0);
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
                         name_of_instance);

TEST(Algorithms, EveryCollectiveHasOne) {
  for (int kind = 0; kind < kCollectives; ++kind) {
    bool found = false;
    for (const Algorithm* algorithm : algorithms())
      found |=
          refusal_of(*algorithm, Case{.kind = Collective(kind), .ranks = 5, .count = 100}.task(0))
              .empty();
    EXPECT_TRUE(found) << name_of(Collective(kind));
  }
}

TEST(Algorithms, TasksThatCannotBe) {
  Task task = Case{.kind = Collective::allgather, .ranks = 4, .count = 100}.task(0);
  task.parts[2].count += 1;
  EXPECT_THROW(make_schedule(ring, task), CommError);
  task.parts[2].count -= 2;
  EXPECT_THROW(make_schedule(pairwise, task), CommError) << "a gap that nobody has announced";
  task.gaps = true;
  EXPECT_NO_THROW(make_schedule(pairwise, task));
  EXPECT_THROW(make_schedule(ring, task), CommError) << "it needs parts that touch";
  task = Case{.kind = Collective::broadcast, .ranks = 4, .count = 100}.task(0);
  task.root = 4;
  EXPECT_THROW(make_schedule(binomial, task), CommError);
  EXPECT_THROW(
      make_schedule(ring, Case{.kind = Collective::broadcast, .ranks = 4, .count = 100}.task(0)),
      CommError);
  task = Case{.kind = Collective::allreduce, .ranks = 4, .count = 100}.task(0);
  task.node_of = {0, 0, 2, 1};
  EXPECT_THROW(make_schedule(two_level, task), CommError) << "node 1 appears after node 2";
  task.node_of = {0, 1};
  EXPECT_THROW(make_schedule(two_level, task), CommError);
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
  const std::string text = to_string(
      make_schedule(ring, Case{.kind = Collective::allreduce, .ranks = 2, .count = 32}.task(0)));
  EXPECT_TRUE(has_text(text, "round 0: receive"));
  EXPECT_TRUE(has_text(text, "output[0..9] = "));
}

}  // namespace
}  // namespace tutti::comm
