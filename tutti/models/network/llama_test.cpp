#include "tutti/models/network/llama.h"

#include <gtest/gtest.h>

#include "tutti/models/model_checks.h"

namespace tutti::models {
namespace {

ModelSpec tiny_llama() {
  return {.name = "llama",
          .input = {8},
          .input_field = "tokens",
          .target_field = "next",
          .batch = 2,
          .classes = 11,
          .width = 24,
          .hidden = {20},
          .depth = 2,
          .heads = 4,
          .key_heads = 2};
}

TEST(Llama, HasTheParametersOfThePublishedOnes) {
  EXPECT_EQ(parameters_of({.name = "llama"}), 6'738'415'616);
  EXPECT_EQ(parameters_of({.name = "tinyllama"}), 1'100'048'384);
  EXPECT_EQ(parameters_of({.name = "llama3"}), 8'030'261'248);
  // Llama 3.2's 1B, tied.
  EXPECT_EQ(parameters_of({.name = "llama3",
                           .width = 2048,
                           .hidden = {8192},
                           .depth = 16,
                           .heads = 32,
                           .key_heads = 8,
                           .tied = true}),
            1'235'814'400);
}

TEST(Llama, ParametersBearThePublishedNames) {
  const Graph graph = build_model(tiny_llama()).graph;
  const auto expect_shape = [&](const char* name, const Shape& shape) {
    ASSERT_TRUE(graph.find(name).valid()) << name;
    EXPECT_EQ(graph.shape(name), shape) << name;
    EXPECT_EQ(graph[graph.find(name)].init.stored,
              shape.rank() == 3 ? Init::Stored::matrix : Init::Stored::as_it_is)
        << name;
  };
  expect_shape("model.embed_tokens.weight", {11, 24, 1});
  expect_shape("model.layers.0.input_layernorm.weight", {24});
  expect_shape("model.layers.0.self_attn.q_proj.weight", {24, 24, 1});
  expect_shape("model.layers.0.self_attn.k_proj.weight", {12, 24, 1});
  expect_shape("model.layers.1.self_attn.v_proj.weight", {12, 24, 1});
  expect_shape("model.layers.1.self_attn.o_proj.weight", {24, 24, 1});
  expect_shape("model.layers.1.post_attention_layernorm.weight", {24});
  expect_shape("model.layers.0.mlp.gate_proj.weight", {20, 24, 1});
  expect_shape("model.layers.0.mlp.up_proj.weight", {20, 24, 1});
  expect_shape("model.layers.0.mlp.down_proj.weight", {24, 20, 1});
  expect_shape("model.norm.weight", {24});
  expect_shape("lm_head.weight", {11, 24, 1});
  EXPECT_EQ(graph.with_role(graph::Role::parameter).size(), 1u + 2 * 9 + 2);
}

TEST(Llama, TiedOnesHaveNoOutputLayer) {
  ModelSpec spec = tiny_llama();
  spec.tied = true;
  EXPECT_FALSE(build_model(spec).graph.find("lm_head.weight").valid());
  EXPECT_EQ(parameters_of(tiny_llama()) - parameters_of(spec), 11 * 24);
}

TEST(Llama, SizesFollowFromEachOther) {
  const auto shape = [](const ModelSpec& spec, const char* name) {
    const Graph graph = build_model(spec).graph;
    return graph.shape(name);
  };
  ModelSpec spec = tiny_llama();
  spec.key_heads = 0;
  EXPECT_EQ(shape(spec, "model.layers.0.self_attn.k_proj.weight"), (Shape{24, 24, 1}));
  spec.hidden.clear();
  spec.width = 384;
  EXPECT_EQ(shape(spec, "model.layers.0.mlp.up_proj.weight"), (Shape{1024, 384, 1}));
}

TEST(Llama, RefusesSizesThatDoNotFit) {
  expect_refused(tiny_llama(), [](ModelSpec& spec) { spec.key_heads = 3; });
  // Heads of five channels; and Llama has no learned positions.
  expect_refused(tiny_llama(), [](ModelSpec& spec) { spec.width = 20; });
  expect_refused(tiny_llama(), [](ModelSpec& spec) { spec.context = 16; });
  EXPECT_THROW(build_model({.name = "gpt2", .key_heads = 2}), ConfigError);
  EXPECT_THROW(build_model({.name = "gpt2", .rotary_base = 500}), ConfigError);
}

}  // namespace
}  // namespace tutti::models
