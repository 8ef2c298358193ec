#include "tutti/split/split.h"

#include <gtest/gtest.h>

#include "tutti/ops/rows.h"

namespace tutti::split {
namespace {

graph::Value take(graph::Graph& graph, graph::Value x, std::vector<graph::Rows> windows,
                  int dim = 2) {
  ops::RowCut cut{.dim = dim, .slabs = 1, .windows = std::move(windows)};
  return graph.append("rows", std::make_shared<ops::GatherRows>(std::move(cut)), {{x}}).front();
}

TEST(RowsRead, WhatAllReadersTakeTogether) {
  graph::Graph graph;
  const graph::Value x = graph.input("x", {DType::f32, Shape{1, 4, 32, 16}, {}});
  EXPECT_FALSE(rows_read(graph, x)) << "nobody says which";
  take(graph, x, {{-2, 9}, {7, 18}});
  take(graph, x, {{4, 20}});
  const auto read = rows_read(graph, x);
  ASSERT_TRUE(read);
  EXPECT_EQ(read->dim, 2);
  EXPECT_EQ(read->rows, (graph::Rows{0, 20}));
}

TEST(RowsRead, NoneWhereAReaderTakesAllOrAnotherDimension) {
  graph::Graph graph;
  const graph::Value x = graph.input("x", {DType::f32, Shape{1, 4, 32, 16}, {}}),
                     y = graph.input("y", {DType::f32, Shape{1, 4, 32, 16}, {}});
  take(graph, x, {{0, 9}});
  take(graph, x, {{0, 32}});
  EXPECT_FALSE(rows_read(graph, x));
  take(graph, y, {{0, 9}});
  take(graph, y, {{0, 9}}, 3);
  EXPECT_FALSE(rows_read(graph, y));
}

}  // namespace
}  // namespace tutti::split
