#include "tutti/models/network/vgg.h"

#include <gtest/gtest.h>

#include "tutti/models/registry.h"

namespace tutti::models {
namespace {

TEST(Vgg, TakesImagesOfAnySizeFrom32On) {
  const ModelGraph small = build_model(
      {.name = "vgg11-bn", .input = {1, 64, 40}, .batch = 2, .classes = 8, .hidden = {128}});
  EXPECT_EQ(small.graph.shape(small.outputs[0].prediction), (Shape{2, 8}));
  EXPECT_EQ(small.graph.shape("classifier.0.weight"), (Shape{128, 512 * 2 * 1}));
  EXPECT_EQ(small.graph.shape("features.0.weight"), (Shape{64, 1, 3, 3}));
  EXPECT_THROW(build_model({.name = "vgg11-bn", .input = {1, 64, 31}}), ConfigError);
}

TEST(Vgg, HasTorchvisionsNames) {
  const ModelGraph m = build_model({.name = "vgg16-bn", .width = 4, .hidden = {8, 8}});
  for (const char* name : {"features.0.weight", "features.1.running_mean", "features.41.bias",
                           "classifier.0.weight", "classifier.3.bias", "classifier.6.weight"})
    EXPECT_TRUE(m.graph.find(name).valid()) << name;
  EXPECT_FALSE(m.graph.find("features.44.weight").valid());
}

TEST(Vgg, DropsInTrainingAlone) {
  ModelSpec spec{.name = "vgg11-bn", .input = {1, 32, 32}, .width = 4, .hidden = {8}};
  EXPECT_TRUE(build_model(spec).graph.find("classifier.2").valid());
  spec.mode = ops::Mode::eval;
  EXPECT_FALSE(build_model(spec).graph.find("classifier.2").valid());
}

}  // namespace
}  // namespace tutti::models
