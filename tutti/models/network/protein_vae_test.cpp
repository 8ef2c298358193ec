#include "tutti/models/network/protein_vae.h"

#include <gtest/gtest.h>

#include "tutti/models/registry.h"

namespace tutti::models {
namespace {

ModelGraph network(int64_t side, ops::Mode mode) {
  return build_model({.name = "protein-vae",
                      .input = {1, side, side},
                      .input_field = "map",
                      .target_field = "map",
                      .batch = 2,
                      .mode = mode});
}

/// Counted by hand: convolutions 640 + 3 * 36,928, as many transposed ones with 577 for the last,
/// dense layers on 18 x 18 x 64.
TEST(ProteinVae, HasTheParametersOfThePublishedOne) {
  const int64_t flat = 18 * 18 * 64;
  EXPECT_EQ(network(36, ops::Mode::train).graph.parameter_count(),
            640 + 6 * 36'928 + 577 + flat * 128 + 128 + 2 * (128 * 3 + 3) + 3 * 128 + 128 +
                128 * flat + flat);
}

TEST(ProteinVae, GivesBackMapsOfAnySide) {
  for (const int64_t side : {4, 21, 28, 35}) {
    const ModelGraph m = network(side, ops::Mode::train);
    EXPECT_EQ(m.graph.shape(m.outputs[0].prediction), (Shape{2, 1, side, side})) << side;
    EXPECT_EQ(m.losses.size(), 2u);
    EXPECT_TRUE(m.graph.find("z").valid());
    EXPECT_EQ(m.graph.shape("z_mean"), (Shape{2, 3}));
  }
}

TEST(ProteinVae, DrawsNothingInEvaluations) {
  EXPECT_FALSE(network(21, ops::Mode::eval).graph.find("z").valid());
}

TEST(ProteinVae, ReadsOutItsLatentNumbersInEvaluations) {
  EXPECT_TRUE(network(21, ops::Mode::train).readings.empty());
  const ModelGraph m = network(21, ops::Mode::eval);
  ASSERT_EQ(m.readings.size(), 2u);
  EXPECT_EQ(m.readings[0].name, "z_mean");
  EXPECT_EQ(m.readings[1].name, "z_log_var");
  for (const ModelReading& reading : m.readings)
    EXPECT_EQ(m.graph.shape(reading.value), (Shape{2, 3})) << reading.name;
  EXPECT_EQ(m.graph.outputs().size(), 3u);
}

TEST(ProteinVae, RefusesOtherMaps) {
  Graph graph;
  for (const Shape& shape : {Shape{1, 1, 8, 9}, Shape{1, 2, 8, 8}, Shape{1, 1, 2, 2}})
    EXPECT_THROW(protein_vae(graph, graph.input(shape.to_string(), {DType::f32, shape, {}})),
                 ConfigError);
}

}  // namespace
}  // namespace tutti::models
