#include "tutti/plan/tiles.h"

#include <gtest/gtest.h>

#include "tutti/base/error.h"
#include "tutti/ops/builder.h"

namespace tutti::plan {
namespace {

constexpr int64_t kSampleBytes = 16 * 4 * 4 * 4;

graph::Value input_image(graph::Graph& graph, const std::string& name, int64_t samples) {
  return graph.input(name, {DType::f32, Shape{samples, 16, 4, 4}, {}});
}

/// The tile of the one band of a network that touches three values, on two threads.
int64_t tile_for(size_t tile_bytes) {
  graph::Graph graph;
  graph.mark_output(
      ops::relu(graph, "second", ops::relu(graph, "first", input_image(graph, "x", 8))));
  Plan plan;
  plan.graph = graph;
  plan.options = {.threads = 2, .tile_bytes = tile_bytes};
  plan.descs = graph::PerValue<TensorDesc>(graph, graph.type(graph::Value{0}).desc);
  const std::vector<PlanBand> bands = cut_into_tiles(plan, make_schedule(graph), 6 * kSampleBytes);
  EXPECT_EQ(bands.size(), 1u);
  EXPECT_EQ(bands[0].samples, 8);
  return bands[0].tile;
}

TEST(Tiles, FitTheGivenMemoryAndAreAtLeastASample) {
  EXPECT_EQ(tile_for(1), 1);
  EXPECT_EQ(tile_for(3 * kSampleBytes), 1);
  EXPECT_EQ(tile_for(6 * kSampleBytes), 2);
  EXPECT_EQ(tile_for(size_t{1} << 40), 4) << "a thread's share";
  EXPECT_EQ(tile_for(0), 2) << "what the backend advises";
}

/// Two samples of two tensors would fit; the weights are as large as nine tensors.
TEST(Tiles, AreAsLargeAsTheWeightsThatTheyGoThrough) {
  const auto tile = [](size_t tile_bytes) {
    graph::Graph graph;
    const ops::ConvSpec spec{.out_channels = 16, .kernel = ops::in_all(3), .pad = ops::in_all(1)};
    graph.mark_output(ops::conv(graph, "y", input_image(graph, "x", 16), spec));
    Plan plan;
    plan.graph = graph;
    plan.options = {.threads = 2, .tile_bytes = tile_bytes};
    plan.descs = graph::PerValue<TensorDesc>(graph, graph.type(graph::Value{0}).desc);
    const graph::Value w = graph.with_role(graph::Role::parameter)[0];
    plan.descs[w] = graph.type(w).desc;
    return cut_into_tiles(plan, make_schedule(graph), 4 * kSampleBytes)[0].tile;
  };
  EXPECT_EQ(tile(0), 4);
  EXPECT_EQ(tile(4 * kSampleBytes), 2) << "as given";
}

TEST(Tiles, InputsAgreeOnTheBatch) {
  graph::Graph graph;
  EXPECT_THROW(batch_of(graph), ConfigError);
  input_image(graph, "x", 8);
  EXPECT_EQ(batch_of(graph), 8);
  input_image(graph, "y", 6);
  EXPECT_THROW(batch_of(graph), ConfigError);
}

}  // namespace
}  // namespace tutti::plan
