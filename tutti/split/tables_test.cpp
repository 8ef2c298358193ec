#include "tutti/split/tables.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "tutti/base/error.h"
#include "tutti/ops/parts.h"
#include "tutti/ops/sequence/embedding.h"

namespace tutti::split {
namespace {

TEST(Tables, AreDealtOutWholeByBytes) {
  const std::vector<Shape> tables = {{100, 4}, {10, 4}, {90, 4}, {80, 4}, {100, 4}};
  const std::vector<TablePiece> dealt = deal_tables(tables, 2);
  ASSERT_EQ(dealt.size(), 5u);
  std::array<int64_t, 2> rows{};
  for (size_t t = 0; t < dealt.size(); ++t) {
    EXPECT_EQ(dealt[t].table, t);
    EXPECT_EQ(dealt[t].first, 0);
    EXPECT_EQ(dealt[t].rows, tables[t][0]);
    rows[static_cast<size_t>(dealt[t].rank)] += dealt[t].rows;
  }
  EXPECT_EQ(rows, (std::array<int64_t, 2>{190, 190}));
  EXPECT_EQ(deal_tables(tables, 2), dealt);
}

TEST(Tables, AreCutByRowsWhereOneIsLargerThanAShare) {
  const std::vector<Shape> tables = {{7, 8}, {1000, 8}};
  const std::vector<TablePiece> dealt = deal_tables(tables, 4);
  ASSERT_EQ(dealt.size(), 5u);
  int64_t next = 0;
  std::vector<int> ranks;
  for (size_t i = 1; i < 5; ++i) {
    EXPECT_EQ(dealt[i].table, 1u);
    EXPECT_EQ(dealt[i].first, next);
    EXPECT_EQ(dealt[i].rows, 250);
    next += dealt[i].rows;
    ranks.push_back(dealt[i].rank);
  }
  std::ranges::sort(ranks);
  EXPECT_EQ(ranks, (std::vector<int>{0, 1, 2, 3})) << "pieces of a table are of different ranks";
  EXPECT_EQ(deal_tables(std::vector<Shape>{{2, 8}}, 4).size(), 2u) << "a row stays whole";
}

/// Makes two lookups, of 3 and 90 rows, and adds their results.
graph::Graph two_lookups() {
  graph::Graph graph;
  const graph::Value rows = graph.input("rows", {DType::i32, {5, 3}, {}});
  const auto look_up = [&](const std::string& name, int64_t length, const ops::Bag& bag) {
    const graph::Value table = graph.table(name + ".weight", {length, 2}, {});
    return graph.append1(name, std::make_shared<ops::EmbeddingBag>(bag), {table, rows});
  };
  look_up("a", 3, {.first = 0});
  graph.mark_output(look_up("b", 90, {.first = 1, .count = 2, .mean = true}));
  return graph;
}

TEST(Tables, ARankKeepsItsOwnRowsAndReadsThemForAll) {
  const graph::Graph whole = two_lookups();
  int64_t rows = 0;
  for (int rank = 0; rank < 3; ++rank) {
    const SharedTables shared = share_tables(whole, {3, rank}, true);
    const graph::Graph& graph = shared.rewritten.graph;
    int exchanges = 0, lookups = 0;
    for (const graph::Node& node : graph.nodes()) {
      exchanges += dynamic_cast<const ops::ExchangeBags*>(node.op.get()) != nullptr;
      const auto* lookup = dynamic_cast<const ops::EmbeddingBag*>(node.op.get());
      if (!lookup) continue;
      EXPECT_EQ(shared.rank_of.at(lookup), lookups++ % 3);
      EXPECT_EQ(lookup->bag().first_row, graph[node.in[0]].rows.first);
    }
    EXPECT_EQ(exchanges, 2);
    for (const graph::Value t : graph.with_role(graph::Role::table)) {
      EXPECT_EQ(graph[t].rows.all, graph[t].name == "a.weight" ? 3 : 90);
      rows += graph.shape(t)[0];
    }
    EXPECT_EQ(lookups, 3 * std::ssize(graph.with_role(graph::Role::table)));
    EXPECT_EQ(graph.shape(graph.outputs().back()), (Shape{5, 2}));
  }
  EXPECT_EQ(rows, 93);
  const graph::Graph alone = share_tables(whole, {1, 0}, true).rewritten.graph;
  EXPECT_EQ(std::ranges::count_if(
                alone.nodes(),
                [](const graph::Node& node) { return node.op->name() == "exchange_bags"; }),
            1)
      << "with itself";
}

TEST(Tables, OneLookupOfATable) {
  graph::Graph graph;
  const graph::Value rows = graph.input("rows", {DType::i32, {5, 2}, {}});
  const graph::Value table = graph.table("t.weight", {9, 2}, {});
  graph.append1("a", std::make_shared<ops::EmbeddingBag>(ops::Bag{.first = 0}), {table, rows});
  graph.append1("b", std::make_shared<ops::EmbeddingBag>(ops::Bag{.first = 1}), {table, rows});
  EXPECT_THROW(share_tables(graph, {2, 0}, true), ConfigError);
}

}  // namespace
}  // namespace tutti::split
