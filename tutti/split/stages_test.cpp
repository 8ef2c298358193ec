#include "tutti/split/stages.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "tutti/base/error.h"
#include "tutti/ops/builder.h"
#include "tutti/ops/parts.h"

namespace tutti::split {
namespace {

/// Dense layers of `width`, one after another, and the sum of the first and the last result.
struct Tower {
  graph::Graph graph;
  std::vector<graph::Value> of_layer;

  explicit Tower(int layers, bool skips = false) {
    constexpr int64_t kWidth = 64;
    graph::Value x = graph.input("x", {DType::f32, Shape{8, kWidth}, {}});
    for (int i = 0; i < layers; ++i) {
      const std::string name = "layer" + std::to_string(i);
      x = ops::relu(graph, name + ".relu", ops::dense(graph, name, x, {.outputs = kWidth}));
      of_layer.push_back(x);
    }
    if (skips) x = ops::add(graph, "skip", of_layer.front(), x);
    graph.mark_output(x);
  }
};

int exchanges_of(const graph::Graph& graph) {
  return static_cast<int>(std::ranges::count_if(graph.nodes(), [](const graph::Node& node) {
    return dynamic_cast<const ops::ExchangeStages*>(node.op.get()) != nullptr;
  }));
}

TEST(Stages, AreAsFastAsEachOther) {
  const Tower tower(6);
  const Stages cut = cut_into_stages(tower.graph, 3);
  ASSERT_EQ(cut.of_node.size(), tower.graph.nodes().size());
  EXPECT_TRUE(std::ranges::is_sorted(cut.of_node));
  for (int layer = 0; layer < 6; ++layer)
    EXPECT_EQ(cut.of_variable.at("layer" + std::to_string(layer) + ".weight"),
              std::vector<int>{layer / 2});
}

TEST(Stages, ThereMustBeWorkForEach) {
  const Tower tower(2);
  EXPECT_NO_THROW(cut_into_stages(tower.graph, 2));
  EXPECT_THROW(cut_into_stages(tower.graph, 3), ConfigError);
}

TEST(Stages, SendWhatOthersReadAndGetItsGradient) {
  const Tower tower(6, true);
  const Stages cut = cut_into_stages(tower.graph, 3);
  const std::vector<bool> trained(tower.graph.values().size(), true);
  const graph::Graph first = take_stage(tower.graph, cut, 0, trained).graph;
  EXPECT_EQ(exchanges_of(first), 1);
  EXPECT_EQ(first.with_role(graph::Role::parameter).size(), 4u);
  const auto& send = dynamic_cast<const ops::ExchangeStages&>(*first.nodes().back().op);
  // One value goes to the next stage and, past it, to the last one.
  EXPECT_EQ(send.gives().size(), 2u);
  EXPECT_TRUE(send.gives_to_others());
  ops::Rewritten last = take_stage(tower.graph, cut, 2, trained);
  EXPECT_EQ(last.graph.nodes().front().in.size(), 0u);
  EXPECT_EQ(last.graph.nodes().front().out.size(), 2u);
  EXPECT_TRUE(last.graph.with_role(graph::Role::input).empty());
  EXPECT_EQ(last.graph.outputs().size(), 1u);
  EXPECT_FALSE(first.outputs().size() > 0);
}

TEST(Stages, WithoutGradientsNothingComesBack) {
  const Tower tower(4);
  const Stages cut = cut_into_stages(tower.graph, 2);
  const graph::Graph first = take_stage(tower.graph, cut, 0, {}).graph;
  EXPECT_FALSE(first.nodes().back().op->gives_to_others());
}

TEST(Stages, OfAnotherGraphAreThoseOfItsVariables) {
  const Tower trained(4), evaluated(4, true);
  const Stages cut = cut_into_stages(trained.graph, 2), like = stages_like(evaluated.graph, cut);
  EXPECT_EQ(like.of_node.front(), 0);
  EXPECT_EQ(like.of_node.back(), 1);
  for (size_t n = 0; n < trained.graph.nodes().size(); ++n)
    if (trained.graph.nodes()[n].in.size() > 1) {  // a layer: it has a weight
      EXPECT_EQ(like.of_node[n], cut.of_node[n]) << n;
    }
}

TEST(Stages, KeepAsManyMicroBatchesAsThereAreStagesFromThemOn) {
  std::vector<int> kept;
  for (int stage = 0; stage < 4; ++stage)
    kept.push_back(batches_under_way(PipelineOrder::one_f_one_b, 4, stage, 8));
  EXPECT_EQ(kept, (std::vector<int>{4, 3, 2, 1}));
  EXPECT_EQ(batches_under_way(PipelineOrder::one_f_one_b, 4, 0, 2), 2);
  EXPECT_EQ(batches_under_way(PipelineOrder::gpipe, 4, 0, 8), 8);
  EXPECT_EQ(batches_under_way(PipelineOrder::gpipe, 4, 3, 8), 1);
  EXPECT_DOUBLE_EQ(pipeline_bubble(4, 8), 3.0 / 11);
  EXPECT_DOUBLE_EQ(pipeline_bubble(1, 8), 0);
}

}  // namespace
}  // namespace tutti::split
