#include "tutti/plan/result_places.h"

#include <gtest/gtest.h>

#include "tutti/ops/builder.h"
#include "tutti/ops/parts.h"
#include "tutti/ops/rows.h"
#include "tutti/plan/tiles.h"

namespace tutti::plan {
namespace {

constexpr size_t kSample = 16 * 4 * 4 * 4;  // bytes
constexpr int64_t kBatch = 8;

/// Where the results of a graph lie, by name; all values have the shape of its input.
struct Placed {
  explicit Placed(const graph::Graph& graph) : graph_(graph) {
    Plan plan;
    plan.graph = graph;
    plan.descs = graph::PerValue<TensorDesc>(graph, graph.type(graph::Value{0}).desc);
    const Schedule schedule = make_schedule(graph);
    plan.options.tile_bytes = 1;
    plan.bands = cut_into_tiles(plan, schedule, 0);
    results_ = place_results(plan, schedule);
  }
  Place operator[](const std::string& name) const {
    for (const auto& [value, place] : results_.places)
      if (graph_[value].name == name) return place;
    ADD_FAILURE() << name << " has no place";
    return {};
  }
  size_t arena_bytes() const { return results_.arena_bytes; }
  size_t tile_bytes() const { return results_.tile_scratch_bytes; }

 private:
  graph::Graph graph_;
  ResultPlaces results_;
};

graph::Value image(graph::Graph& graph) {
  return graph.input("x", {DType::f32, Shape{kBatch, 16, 4, 4}, {}});
}

TEST(ResultPlaces, AResultTakesOverWhatNobodyReadsAfterwards) {
  graph::Graph graph;
  const graph::Value first = ops::relu(graph, "first", image(graph));
  graph.mark_output(ops::relu(graph, "second", first));
  const Placed placed(graph);
  EXPECT_EQ(placed["first"].base, kArena);
  EXPECT_EQ(placed["first"].offset, placed["second"].offset);
  EXPECT_EQ(placed["second"].stride, kSample);
  EXPECT_EQ(placed.arena_bytes(), kBatch * kSample);
  EXPECT_EQ(placed.tile_bytes(), 0u);
}

TEST(ResultPlaces, WhatIsReadLaterKeepsItsMemory) {
  graph::Graph graph;
  const graph::Value first = ops::relu(graph, "first", image(graph));
  const graph::Value second = ops::relu(graph, "second", first);
  graph.mark_output(ops::relu(graph, "third", ops::add(graph, "sum", first, second)));
  const Placed placed(graph);
  const Place a = placed["first"], b = placed["second"];
  EXPECT_TRUE(a.base != b.base || a.offset != b.offset);
}

/// Another thread's tile may still read it: a slab reads rows of its neighbours.
TEST(ResultPlaces, WhatABandReadsAcrossSamplesIsNotOverwrittenInIt) {
  graph::Graph graph;
  const graph::Value first = ops::relu(graph, "first", image(graph));
  const graph::Value windows = graph.append1(
      "windows", std::make_shared<ops::GatherRows>(ops::RowCut{.dim = 2, .windows = {{0, 4}}}),
      {first});
  graph.mark_output(ops::add(graph, "sum", first, windows));
  const Placed placed(graph);
  EXPECT_EQ(placed["first"].base, kArena);
  EXPECT_NE(placed["first"].offset, placed["sum"].offset);
}

graph::OpPtr swap_with_a_neighbour(const graph::Graph& graph, graph::Value v) {
  return std::make_shared<ops::ExchangeParts>(
      0, std::vector<ops::ExchangeParts::Give>{{0, 1}},
      std::vector<ops::ExchangeParts::Get>{{1, graph.type(v)}});
}

/// Slabs that need no other rank's values run before the wait, while the sent value is still read.
TEST(ResultPlaces, WhatIsSentIsNotOverwrittenInTheBandThatWaits) {
  graph::Graph graph;
  const graph::Value first = ops::relu(graph, "first", image(graph));
  const graph::Value received =
      graph.append1("received", swap_with_a_neighbour(graph, first), {first});
  graph.mark_output(ops::add(graph, "sum", first, received));
  const Placed placed(graph);
  EXPECT_EQ(placed["first"].base, kArena);
  EXPECT_NE(placed["first"].offset, placed["sum"].offset);
}

TEST(ResultPlaces, WhatIsSentAtTheEndIsNotOverwritten) {
  graph::Graph graph;
  const graph::Value first = ops::relu(graph, "first", image(graph));
  graph.append1("received", swap_with_a_neighbour(graph, first), {first});
  graph.mark_output(ops::relu(graph, "second", first));
  const Placed placed(graph);
  EXPECT_EQ(placed["first"].base, kArena);
  EXPECT_NE(placed["first"].offset, placed["second"].offset);
}

TEST(ResultPlaces, WhatStaysInItsBandLiesInATile) {
  graph::Graph graph;
  const graph::Value inner = ops::relu(graph, "inner", image(graph));
  const graph::Value outer = ops::conv(graph, "outer", inner, {.out_channels = 16});
  graph.mark_output(outer);
  const Placed placed(graph);
  EXPECT_EQ(placed["inner"].base, kTile);
  EXPECT_EQ(placed["outer"].base, kArena);
  EXPECT_EQ(placed.tile_bytes(), kSample) << "tiles of one sample";
}

}  // namespace
}  // namespace tutti::plan
