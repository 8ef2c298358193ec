#include "tutti/models/network/ffn.h"

#include <gtest/gtest.h>

#include "tutti/models/registry.h"

namespace tutti::models {
namespace {

ModelGraph ffn_network(int64_t depth, ops::Mode mode, Shape sample = {1, 9, 9, 9}) {
  return build_model({.name = "ffn",
                      .input = sample,
                      .input_field = "image",
                      .target_field = "label",
                      .batch = 2,
                      .depth = depth,
                      .mode = mode});
}

TEST(Ffn, HasTheParametersOfThePublishedOne) {
  EXPECT_EQ(ffn_network(0, ops::Mode::train).graph.parameter_count(), 638'433);
  EXPECT_EQ(ffn_network(9, ops::Mode::train).graph.parameter_count(), 472'353);
}

TEST(Ffn, AddsToTheSeed) {
  const ModelGraph m = ffn_network(3, ops::Mode::train);
  EXPECT_EQ(m.inputs.size(), 2u);
  EXPECT_EQ(m.inputs[1].field, "seed");
  EXPECT_EQ(m.targets.size(), 1u);
  EXPECT_EQ(m.graph.shape(m.outputs[0].prediction), (Shape{2, 1, 9, 9, 9}));
  EXPECT_TRUE(m.graph.find("conv2_b.weight").valid());
  EXPECT_FALSE(m.graph.find("conv3_a.weight").valid());
  EXPECT_EQ(ffn_network(3, ops::Mode::eval).targets.size(), 0u);
}

TEST(Ffn, RefusesOtherVolumes) {
  Graph graph;
  const Value seed = graph.input("seed", {DType::f32, {1, 1, 5, 5, 5}, {}});
  for (const Shape& shape : {Shape{1, 1, 5, 5}, Shape{1, 2, 5, 5, 5}, Shape{1, 1, 5, 5, 6}})
    EXPECT_THROW(ffn_logits(graph, graph.input(shape.to_string(), {DType::f32, shape, {}}), seed),
                 ConfigError);
  EXPECT_THROW(ffn_network(-1, ops::Mode::train), ConfigError);
  EXPECT_THROW(build_model({.name = "mlp", .depth = 3}), ConfigError);
}

}  // namespace
}  // namespace tutti::models
