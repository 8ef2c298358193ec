#include "tutti/models/network/vit.h"

#include <gtest/gtest.h>

#include "tutti/models/model_checks.h"

namespace tutti::models {
namespace {

TEST(Vit, HasTheParametersOfThePublishedOnes) {
  EXPECT_EQ(parameters_of({.name = "vit-ti"}), 5'717'416);
  EXPECT_EQ(parameters_of({.name = "vit-s"}), 22'050'664);
  EXPECT_EQ(parameters_of({.name = "vit-b"}), 86'567'656);
  EXPECT_EQ(parameters_of({.name = "vit-b", .kernel = 32}), 88'224'232);
}

TEST(Vit, ParametersBearTheNamesOfTimm) {
  const Graph graph =
      build_model({.name = "vit-ti", .input = {3, 32, 32}, .classes = 10, .depth = 2, .kernel = 4})
          .graph;
  const auto expect_shape = [&](const char* name, const Shape& shape) {
    ASSERT_TRUE(graph.find(name).valid()) << name;
    EXPECT_EQ(graph.shape(name), shape) << name;
  };
  expect_shape("cls_token", {1, 1, 192});
  expect_shape("pos_embed", {1, 65, 192});
  expect_shape("patch_embed.proj.weight", {192, 3, 4, 4});
  expect_shape("patch_embed.proj.bias", {192});
  expect_shape("blocks.0.norm1.weight", {192});
  expect_shape("blocks.0.attn.qkv.weight", {576, 192, 1});
  expect_shape("blocks.0.attn.qkv.bias", {576});
  expect_shape("blocks.1.attn.proj.weight", {192, 192, 1});
  expect_shape("blocks.1.norm2.bias", {192});
  expect_shape("blocks.1.mlp.fc1.weight", {768, 192, 1});
  expect_shape("blocks.1.mlp.fc2.bias", {192});
  expect_shape("norm.weight", {192});
  expect_shape("head.weight", {10, 192});
  expect_shape("head.bias", {10});
  EXPECT_EQ(graph.with_role(graph::Role::parameter).size(), 4u + 2 * 12 + 4);
}

TEST(Vit, PatchesFillTheImage) {
  EXPECT_EQ(build_model({.name = "vit-ti", .input = {1, 24, 40}, .kernel = 8})
                .graph.shape(build_model({.name = "vit-ti", .input = {1, 24, 40}, .kernel = 8})
                                 .graph.find("pos_embed")),
            (Shape{1, 16, 192}));
  EXPECT_THROW(build_model({.name = "vit-ti", .input = {3, 24, 36}, .kernel = 8}), ConfigError);
  EXPECT_THROW(build_model({.name = "vit-ti", .heads = 5}), ConfigError);
}

}  // namespace
}  // namespace tutti::models
