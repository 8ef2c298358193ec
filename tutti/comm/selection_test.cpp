#include "tutti/comm/selection.h"

#include <gtest/gtest.h>

#include "tutti/base/error.h"

namespace tutti::comm {
namespace {

Task allreduce(int ranks, size_t count, std::vector<int> nodes = {}) {
  Task task;
  task.kind = Collective::allreduce;
  task.ranks = ranks;
  task.count = count;
  task.nodes = std::move(nodes);
  return task;
}

std::string error_of(std::string_view text) {
  try {
    Selection::parse(text, "table.txt");
  } catch (const ConfigError& error) {
    return error.what();
  }
  return "no error";
}

TEST(Selection, FirstLineThatFits) {
  const Selection table = Selection::parse(
      "# sizes\nallreduce 4 * 1024 * recursive_doubling\nallreduce * * * * ring  # the rest\n",
      "table.txt");
  EXPECT_EQ(table.choose(allreduce(4, 256), 4, false), "recursive_doubling");
  EXPECT_EQ(table.choose(allreduce(5, 256), 4, false), "ring");
  EXPECT_EQ(table.choose(allreduce(4, 257), 4, false), "ring");
  EXPECT_NE(table.choose(allreduce(4, 257), 4, true), "ring")
      << "it does not add in the order of the tree";
  EXPECT_EQ(Selection::parse(table.to_string(), "again").to_string(), table.to_string());
}

TEST(Selection, WhatTheTableLacksIsDoneByAnyThatCan) {
  Task task = allreduce(3, 100);
  task.kind = Collective::broadcast;
  EXPECT_EQ(Selection::parse("", "empty").choose(task, 4, false), "binomial");
}

TEST(Selection, NodesWithUnequalRanksAreNotTwoLevel) {
  EXPECT_EQ(Selection().choose(allreduce(8, 1 << 20, {0, 4, 8}), 4, false), "two_level");
  EXPECT_EQ(Selection().choose(allreduce(8, 1 << 20, {0, 3, 8}), 4, false), "vector_halving");
}

TEST(Selection, TopologyAndReproducibleAreKeys) {
  const Selection table = Selection::parse(
      "allreduce * node * yes vector_halving\nallreduce * node * no ring\nallreduce * nodes * * "
      "recursive_doubling\n",
      "table.txt");
  EXPECT_EQ(table.choose(allreduce(4, 1000), 4, true), "vector_halving");
  EXPECT_EQ(table.choose(allreduce(4, 1000), 4, false), "ring");
  EXPECT_EQ(table.choose(allreduce(4, 1000, {0, 4}), 4, false), "ring");
  EXPECT_EQ(table.choose(allreduce(4, 1000, {0, 2, 4}), 4, false), "recursive_doubling");
  EXPECT_EQ(table.choose(allreduce(4, 1000, {0, 2, 4}), 4, true), "recursive_doubling");
  EXPECT_EQ(Selection::parse(table.to_string(), "again").to_string(), table.to_string());
}

TEST(Selection, BeforeAnotherTable) {
  const Selection table =
      Selection::parse("allreduce 4 * * * ring", "table.txt").before(Selection());
  EXPECT_EQ(table.choose(allreduce(4, 1), 4, false), "ring");
  EXPECT_EQ(table.choose(allreduce(8, 1), 4, false), Selection().choose(allreduce(8, 1), 4, false));
}

TEST(Selection, ErrorsNameTheLine) {
  EXPECT_NE(error_of("\nallreduce * *\n").find("table.txt:2: expected"), std::string::npos);
  EXPECT_NE(error_of("allreduce * * * * ring more").find("table.txt:1: expected"),
            std::string::npos);
  EXPECT_NE(error_of("allreduces * * * * ring").find("no collective"), std::string::npos);
  EXPECT_NE(error_of("allreduce 0 * * * ring").find("'0' is no upper bound"), std::string::npos);
  EXPECT_NE(error_of("allreduce * * 1K * ring").find("'1K' is no upper bound"), std::string::npos);
  EXPECT_NE(error_of("allreduce * 2 * * ring").find("'2' is no topology"), std::string::npos);
  EXPECT_NE(error_of("allreduce * * * maybe ring").find("not 'maybe'"), std::string::npos);
  EXPECT_NE(error_of("\n\nallreduce * * * * rings")
                .find("table.txt:3: no algorithm is called 'rings'; there are pairwise"),
            std::string::npos);
}

}  // namespace
}  // namespace tutti::comm
