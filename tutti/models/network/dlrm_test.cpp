#include "tutti/models/network/dlrm.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "tutti/base/error.h"
#include "tutti/base/expect_text.h"
#include "tutti/models/registry.h"
#include "tutti/ops/sequence/embedding.h"

namespace tutti::models {
namespace {

ModelSpec small() {
  return {.name = "dlrm",
          .input = {3},
          .input_field = "dense",
          .inputs = {{.name = "dense", .sample = {3}},
                     {.name = "rows", .sample = {2}, .rows = {10, 20}}},
          .batch = 5,
          .width = 4,
          .hidden = {6}};
}

TEST(Dlrm, HasATableForEachCategory) {
  const ModelGraph m = build_model(small());
  EXPECT_EQ(m.graph.shape("emb_l.0.weight"), (Shape{10, 4}));
  EXPECT_EQ(m.graph.shape("emb_l.1.weight"), (Shape{20, 4}));
  EXPECT_EQ(m.graph.shape("bot_l.2.weight"), (Shape{4, 6}));
  EXPECT_EQ(m.graph.shape("top_l.0.weight"), (Shape{6, 4 + 3}));
  EXPECT_EQ(m.graph.shape(m.outputs[0].prediction), (Shape{5, 1}));
  ASSERT_EQ(m.inputs.size(), 2u);
  EXPECT_EQ(m.inputs[1].field, "rows");
  EXPECT_EQ(m.graph.type(m.inputs[1].value).desc, (TensorDesc{DType::i32, {5, 2}, {}}));
}

TEST(Dlrm, TablesHaveNoGradientButThatOfTheirVectors) {
  ModelGraph m = build_model(small());
  const std::vector<Value> parameters = m.graph.with_role(graph::Role::parameter);
  std::vector<Value> all = m.graph.with_role(graph::Role::table);
  all.insert(all.end(), parameters.begin(), parameters.end());
  std::vector<graph::RowGradient> tables;
  const std::vector<Value> trained = ops::differentiate(m.graph, m.losses, all, &tables);
  EXPECT_EQ(trained.size(), parameters.size());
  ASSERT_EQ(tables.size(), 2u);
  for (const graph::RowGradient& table : tables) {
    EXPECT_EQ(m.graph[table.table].role, graph::Role::table);
    EXPECT_EQ(std::ranges::count(trained, table.table), 0);
    EXPECT_EQ(m.graph.shape(table.dy), (Shape{5, 4}));
    EXPECT_EQ(table.rows, m.inputs[1].value);
    EXPECT_EQ(std::ranges::count(m.graph.outputs(), table.dy), 1);
  }
  for (const Value g : m.graph.with_role(graph::Role::gradient))
    EXPECT_EQ(m.graph[m.graph[g].of].role, graph::Role::parameter);
}

TEST(Dlrm, FeaturesMayStandOneAfterTheOther) {
  ModelSpec spec = small();
  spec.interaction = FeatureInteraction::cat;
  const ModelGraph m = build_model(spec);
  EXPECT_EQ(m.graph.shape("top_l.0.weight"), (Shape{6, 3 * 4}));
  EXPECT_FALSE(m.graph.find("interaction").valid());
  spec.name = "mlp";
  EXPECT_THROW(build_model(spec), ConfigError);
}

TEST(Dlrm, BagsOfSeveralColumnsReadOneTable) {
  ModelSpec spec = small();
  spec.inputs[1] = {.name = "rows", .sample = {5}, .rows = {10, 10, 10, 20, 20}, .bags = {3, 2}};
  spec.inputs.push_back({.name = "weights", .sample = {5}});
  spec.pooling = Pooling::mean;
  const ModelGraph m = build_model(spec);
  EXPECT_EQ(m.graph.shape("emb_l.0.weight"), (Shape{10, 4}));
  EXPECT_EQ(m.graph.shape("emb_l.1.weight"), (Shape{20, 4}));
  int64_t columns = 0;
  for (const graph::Node& node : m.graph.nodes())
    if (const auto* lookup = dynamic_cast<const ops::EmbeddingBag*>(node.op.get())) {
      EXPECT_TRUE(lookup->bag().mean);
      EXPECT_TRUE(lookup->bag().weighted);
      EXPECT_EQ(lookup->bag().first, columns);
      columns += lookup->bag().count;
    }
  EXPECT_EQ(columns, 5);
}

TEST(Dlrm, RefusesAFieldThatNamesNoRows) {
  ModelSpec spec = small();
  spec.inputs[1].rows.clear();
  EXPECT_TRUE(
      throws<ConfigError>({"'rows' holds no numbers of their rows"}, [&] { build_model(spec); }));
}

}  // namespace
}  // namespace tutti::models
