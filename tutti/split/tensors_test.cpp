#include "tutti/split/tensors.h"

#include <gtest/gtest.h>

#include <numeric>

#include "tutti/base/error.h"
#include "tutti/ops/sequence/attention.h"
#include "tutti/ops/sequence/sequence.h"
#include "tutti/ops/sequence/swiglu.h"
#include "tutti/ops/sequence/waves.h"

namespace tutti::split {
namespace {

TEST(TensorSlice, TakesBlocksInWholeUnitsAndPutsThemBack) {
  // Queries have 4 heads, keys and values 2, each of 3 channels; columns [24, 2].
  const graph::TensorSlice slice{
      .whole = {24, 2}, .dim = 0, .blocks = {{12, 3}, {6, 3}, {6, 3}}, .ranks = 2, .me = 1};
  EXPECT_EQ(slice.rows(0), (std::vector<graph::Rows>{{0, 6}, {12, 15}, {18, 21}}));
  EXPECT_EQ(slice.rows(1), (std::vector<graph::Rows>{{6, 12}, {15, 18}, {21, 24}}));
  for (const int dim : {0, 1}) {
    graph::TensorSlice each = slice;
    each.dim = dim;
    if (dim == 1) each.whole = {2, 24};
    std::vector<float> all(48), again(48);
    std::iota(all.begin(), all.end(), 0.0f);
    for (int rank = 0; rank < 2; ++rank) {
      std::vector<float> part(static_cast<size_t>(each.shape(rank).elements()));
      each.take(all, rank, part);
      each.put(part, rank, again);
      if (rank == 1 && dim == 1) {
        EXPECT_EQ(part[6], 15.0f) << "behind the queries come keys";
      }
    }
    EXPECT_EQ(again, all);
  }
}

/// Makes a block like Llama's: separate projections, rotated queries and keys with one key head for
/// two query heads, a gate.
graph::Graph gated_block(int64_t heads, int64_t key_heads) {
  graph::Graph g;
  const graph::Value x = g.input("x", {DType::f32, {2, 16, 5}, {}});
  const auto project = [&](const char* name, const graph::Value& from, int64_t outputs) {
    return ops::linear(g, name, from, {.outputs = outputs, .bias = false});
  };
  const auto turned = [&](const char* name, int64_t count) {
    return g.append1(
        std::string(name) + ".turned",
        std::make_shared<ops::Rotate>(ops::RotationAttributes{.heads = count, .width = 4}),
        {project(name, x, 4 * count)});
  };
  const graph::Value q = turned("q", heads), k = turned("k", key_heads),
                     v = project("v", x, 4 * key_heads);
  const ops::AttentionAttributes a{.heads = heads,
                                   .key_heads = key_heads,
                                   .causal = true,
                                   .inputs = ops::AttentionInputs::separate};
  const graph::Value y =
      ops::layer_norm(g, "ln", project("o", ops::attention(g, "attn", {q, k, v}, a), 16));
  const graph::Value gated = g.append1("mlp", std::make_shared<ops::SwiGlu>(),
                                       {project("gate", y, 10), project("up", y, 10)});
  g.mark_output(project("down", gated, 16));
  return g;
}

TEST(SplitTensors, FindsGatesRotationsAndGroupedHeads) {
  const graph::Graph g = gated_block(4, 2);
  const SplitTensors split = split_tensors(g, PartGrid::of_tensors(2, 2, 1));
  const auto shape_of = [&](const char* name) {
    return split.rewritten.graph.shape(split.rewritten.graph.find(name));
  };
  EXPECT_EQ(shape_of("q.weight"), (Shape{8, 16, 1}));
  EXPECT_EQ(shape_of("k.weight"), (Shape{4, 16, 1}));
  EXPECT_EQ(shape_of("v.weight"), (Shape{4, 16, 1}));
  EXPECT_EQ(shape_of("o.weight"), (Shape{16, 8, 1}));
  EXPECT_EQ(shape_of("gate.weight"), (Shape{5, 16, 1}));
  EXPECT_EQ(shape_of("up.weight"), (Shape{5, 16, 1}));
  EXPECT_EQ(shape_of("down.weight"), (Shape{16, 5, 1}));
  EXPECT_EQ(split.slices.at("q.weight").rows(1), (std::vector<graph::Rows>{{8, 16}}));
  EXPECT_EQ(split.rewritten.graph.shape(split.rewritten.graph.outputs()[0]), (Shape{2, 16, 5}));
}

TEST(SplitTensors, LeavesHeadsWholeThatRanksCannotDivide) {
  const graph::TensorSlices slices =
      split_tensors(gated_block(4, 1), PartGrid::of_tensors(2, 2, 0)).slices;
  EXPECT_FALSE(slices.contains("q.weight"));
  EXPECT_FALSE(slices.contains("o.weight"));
  EXPECT_TRUE(slices.contains("gate.weight"));
}

/// Two of three layers in a row are a pair; a layer whose result another node reads stays whole.
TEST(SplitTensors, CutsPairsThatAloneReadWhatTheyMake) {
  graph::Graph g;
  const graph::Value x = g.input("x", {DType::f32, {2, 6, 5}, {}});
  const graph::Value a = ops::linear(g, "a", x, {.outputs = 8});
  const graph::Value b =
      ops::linear(g, "b", ops::activation(g, "gelu", a, ops::ActivationKind::gelu), {.outputs = 6});
  const graph::Value c = ops::linear(g, "c", b, {.outputs = 6});
  g.mark_output(c);
  const SplitTensors split = split_tensors(g, PartGrid::of_tensors(2, 2, 0));
  EXPECT_EQ(split.slices.size(), 3u) << "a.weight, a.bias and b.weight";
  EXPECT_EQ(split.slices.at("b.weight").dim, 1);
  EXPECT_EQ(split.rewritten.graph.shape(split.rewritten.graph.find("b.bias")), (Shape{6}));
  g.mark_output(a);
  g.mark_output(b);
  EXPECT_THROW(split_tensors(g, PartGrid::of_tensors(2, 2, 0)), ConfigError);
}

/// LoRA (models/lora.h): the adapter's second layer is shared like the layer beside it.
TEST(SplitTensors, APairBesideALayerLeavesItShared) {
  graph::Graph g;
  const graph::Value x = g.input("x", {DType::f32, {2, 16, 5}, {}});
  const auto adapted = [&](const std::string& name, const graph::Value& from, int64_t outputs) {
    const graph::Value a = ops::linear(g, name + ".A", from, {.outputs = 2, .bias = false});
    return ops::add(g, name + ".lora", ops::linear(g, name, from, {.outputs = outputs}),
                    ops::linear(g, name + ".B", a, {.outputs = outputs, .bias = false}));
  };
  const graph::Value y =
      ops::attention(g, "attn", {adapted("qkv", x, 48)}, {.heads = 4, .key_heads = 4});
  const graph::Value z = ops::layer_norm(g, "ln", adapted("proj", y, 16));
  const graph::Value hidden =
      ops::activation(g, "gelu", adapted("up", z, 50), ops::ActivationKind::gelu);
  g.mark_output(adapted("down", hidden, 16));
  const graph::TensorSlices slices = split_tensors(g, PartGrid::of_tensors(2, 2, 0)).slices;
  for (const char* layer : {"qkv", "qkv.B", "up", "up.B"}) {
    ASSERT_TRUE(slices.contains(fmt::format("{}.weight", layer))) << layer;
    EXPECT_EQ(slices.at(fmt::format("{}.weight", layer)).dim, 0) << layer;
  }
  for (const char* layer : {"proj", "proj.A", "down", "down.A"}) {
    ASSERT_TRUE(slices.contains(fmt::format("{}.weight", layer))) << layer;
    EXPECT_EQ(slices.at(fmt::format("{}.weight", layer)).dim, 1) << layer;
  }
  EXPECT_EQ(slices.at("qkv.B.weight").blocks, slices.at("qkv.weight").blocks);
  EXPECT_FALSE(slices.contains("qkv.A.weight"));
  EXPECT_FALSE(slices.contains("proj.B.weight"));
}

TEST(SplitTensors, AGridWithoutThemLeavesTheGraph) {
  const graph::Graph g = gated_block(4, 2);
  const SplitTensors same = split_tensors(g, PartGrid());
  EXPECT_EQ(same.rewritten.graph.to_string(), g.to_string());
  EXPECT_TRUE(same.slices.empty());
}

}  // namespace
}  // namespace tutti::split
