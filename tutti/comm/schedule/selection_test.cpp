#include "tutti/comm/schedule/selection.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "tutti/base/error.h"
#include "tutti/base/expect_text.h"

namespace tutti::comm {
namespace {

Task allreduce(int ranks, size_t count, std::vector<int> node_of = {}) {
  return {
      .kind = Collective::allreduce, .ranks = ranks, .count = count, .node_of = std::move(node_of)};
}

Task ordered(Task task) {
  task.ordered = true;
  return task;
}

std::string error_of(std::string_view text) {
  return message_of<ConfigError>([&] { Selection::parse(text, "table.txt"); });
}

TEST(Selection, FirstLineThatFits) {
  const Selection table = Selection::parse(
      "# sizes\nallreduce 4 * 1024 * recursive_doubling\nallreduce * * * * ring  # the rest\n",
      "table.txt");
  EXPECT_EQ(table.choose(allreduce(4, 256), 4), "recursive_doubling");
  EXPECT_EQ(table.choose(allreduce(5, 256), 4), "ring");
  EXPECT_EQ(table.choose(allreduce(4, 257), 4), "ring");
  EXPECT_NE(table.choose(ordered(allreduce(4, 257)), 4), "ring")
      << "it does not add in the order of the tree";
  EXPECT_EQ(Selection::parse(table.to_string(), "again").to_string(), table.to_string());
}

TEST(Selection, WhatTheTableLacksIsDoneByAnyThatCan) {
  Task task = allreduce(3, 100);
  task.kind = Collective::broadcast;
  EXPECT_EQ(Selection::parse("", "empty").choose(task, 4), "binomial");
}

const std::vector<int> kUneven{0, 0, 0, 1, 1, 1, 1, 1}, kCyclic{0, 1, 0, 1, 0, 1, 0, 1};

TEST(Selection, BetweenNodesLargeOnesGoByTwoLevels) {
  for (const Collective kind :
       {Collective::allreduce, Collective::reduce_scatter, Collective::allgather})
    for (const bool in_order : {false, true})
      for (const auto& nodes : {std::vector{0, 0, 0, 0, 1, 1, 1, 1}, kUneven}) {
        Task task = allreduce(8, 1 << 20, nodes);
        task.kind = kind, task.ordered = in_order;
        EXPECT_EQ(Selection().choose(task, 4), "two_level") << name_of(kind);
      }
  EXPECT_EQ(Selection().choose(allreduce(8, 1 << 20, kCyclic), 4), "two_level");
  EXPECT_EQ(Selection().choose(ordered(allreduce(8, 1 << 20, kCyclic)), 4), "recursive_halving");
  EXPECT_EQ(Selection().choose(allreduce(3, 1 << 20, {0, 1, 2}), 4), "recursive_halving");
}

TEST(Selection, AnAllToAllOfSmallBlocksTakesFewMessages) {
  std::vector<int> nodes;
  for (int p = 0; p < 64; ++p) nodes.push_back(p / 8);
  Task task = allreduce(64, 1024, nodes);
  task.kind = Collective::all_to_all, task.equal_blocks = true;
  EXPECT_EQ(Selection().choose(task, 4), "bruck");
  task.count = 1 << 20;
  EXPECT_EQ(Selection().choose(task, 4), "two_level");
  task.equal_blocks = false;
  EXPECT_EQ(Selection().choose(task, 4), "pairwise");
}

TEST(Selection, SaysWhyItIsNotByTwoLevels) {
  EXPECT_EQ(explain_choice(allreduce(8, 100, kUneven), 4, "two_level"), "");
  EXPECT_EQ(explain_choice(allreduce(8, 100), 4, "recursive_halving"), "") << "one node";
  EXPECT_EQ(explain_choice(allreduce(3, 100, {0, 1, 2}), 4, "recursive_halving"), "");
  EXPECT_EQ(explain_choice(allreduce(8, 100, kUneven), 4, "recursive_doubling"),
            "allreduce of 400 bytes among 8 ranks on 2 nodes goes by recursive_doubling: the table "
            "has it before two_level for this size");
  EXPECT_EQ(
      explain_choice(ordered(allreduce(8, 1 << 20, kCyclic)), 4, "recursive_halving"),
      "allreduce of 4194304 bytes among 8 ranks on 2 nodes goes by recursive_halving: two_level "
      "could add nothing on a node: sums are taken in the order of the ranks, and no two "
      "ranks of a node are neighbours in it");
  Task blocks = allreduce(8, 0, kUneven);
  blocks.kind = Collective::all_to_all;
  EXPECT_EQ(explain_choice(blocks, 4, "pairwise"),
            "all_to_all of 0 bytes among 8 ranks on 2 nodes goes by pairwise: two_level needs an "
            "all_to_all of equal blocks");
  blocks.kind = Collective::broadcast;
  EXPECT_EQ(explain_choice(blocks, 4, "binomial"), "");
}

TEST(Selection, TopologyAndReproducibleAreKeys) {
  const Selection table = Selection::parse(
      "allreduce * node * yes recursive_halving\nallreduce * node * no ring\nallreduce * nodes * * "
      "recursive_doubling\n",
      "table.txt");
  EXPECT_EQ(table.choose(ordered(allreduce(4, 1000)), 4), "recursive_halving");
  EXPECT_EQ(table.choose(allreduce(4, 1000), 4), "ring");
  EXPECT_EQ(table.choose(allreduce(4, 1000, {0, 0, 0, 0}), 4), "ring");
  EXPECT_EQ(table.choose(allreduce(4, 1000, {0, 0, 1, 1}), 4), "recursive_doubling");
  EXPECT_EQ(table.choose(ordered(allreduce(4, 1000, {0, 0, 1, 1})), 4), "recursive_doubling");
  EXPECT_EQ(Selection::parse(table.to_string(), "again").to_string(), table.to_string());
}

TEST(Selection, BeforeAnotherTable) {
  const Selection table =
      Selection::parse("allreduce 4 * * * ring", "table.txt").before(Selection());
  EXPECT_EQ(table.choose(allreduce(4, 1), 4), "ring");
  EXPECT_EQ(table.choose(allreduce(8, 1), 4), Selection().choose(allreduce(8, 1), 4));
}

TEST(Selection, ErrorsNameTheLine) {
  EXPECT_TRUE(has_text(error_of("\nallreduce * *\n"), "table.txt:2: expected"));
  EXPECT_TRUE(has_text(error_of("allreduce * * * * ring more"), "table.txt:1: expected"));
  EXPECT_TRUE(has_text(error_of("allreduces * * * * ring"), "no collective"));
  EXPECT_TRUE(has_text(error_of("allreduce 0 * * * ring"), "'0' is no upper bound"));
  EXPECT_TRUE(has_text(error_of("allreduce * * 1K * ring"), "'1K' is no upper bound"));
  EXPECT_TRUE(has_text(error_of("allreduce * 2 * * ring"), "'2' is no topology"));
  EXPECT_TRUE(has_text(error_of("allreduce * * * maybe ring"), "not 'maybe'"));
  EXPECT_TRUE(
      has_text(error_of("\nbroadcast * * * no bruck"), "table.txt:2: bruck does not do broadcast"));
  for (const char* algorithm : {"ring", "ring_2d", "double_tree"})
    EXPECT_TRUE(has_text(error_of(fmt::format("allreduce * * * yes {}", algorithm)),
                         fmt::format("table.txt:1: {} does not add in the order", algorithm)));
  EXPECT_EQ(error_of("allreduce 2 * * yes ring\nallgather * * * yes ring\nallreduce * nodes * yes "
                     "two_level\nbroadcast 1 * * * binomial"),
            "no error");
  EXPECT_TRUE(has_text(error_of("\n\nallreduce * * * * rings"),
                       "table.txt:3: no algorithm is called 'rings'; there are pairwise"));
}

}  // namespace
}  // namespace tutti::comm
