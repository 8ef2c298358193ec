#include "tutti/models/lora.h"

#include <gtest/gtest.h>

#include "tutti/models/model_checks.h"

namespace tutti::models {
namespace {

ModelSpec adapted_gpt2(std::vector<std::string> layers, int64_t rank = 2) {
  ModelSpec spec = tiny_gpt2();
  spec.lora = {.rank = rank, .layers = std::move(layers)};
  return spec;
}

TEST(Lora, StandsBesideTheLayersThatPatternsFit) {
  const ModelGraph plain = build_model(tiny_gpt2()),
                   made = build_model(adapted_gpt2({"*.attn.c_attn", "h.1.mlp.*"}));
  const Graph& graph = made.graph;
  EXPECT_EQ(graph.shape("h.0.attn.c_attn.lora_A.weight"), (Shape{2, 12, 1}));
  EXPECT_EQ(graph.shape("h.0.attn.c_attn.lora_B.weight"), (Shape{36, 2, 1}));
  EXPECT_EQ(graph[graph.find("h.1.attn.c_attn.lora_B.weight")].init.kind, Init::Kind::zeros);
  EXPECT_TRUE(graph.find("h.1.mlp.c_proj.lora_A.weight").valid());
  EXPECT_FALSE(graph.find("h.0.mlp.c_proj.lora_A.weight").valid());
  EXPECT_EQ(graph.parameter_count() - plain.graph.parameter_count(),
            2 * 2 * (12 + 36) + 2 * 2 * (12 + 48));
  ASSERT_EQ(made.inputs.size(), plain.inputs.size());
  EXPECT_EQ(graph[made.inputs[0].value].name, "tokens");
  EXPECT_EQ(graph.shape(made.outputs[0].prediction), (Shape{2, 1, 8}));
  EXPECT_EQ(graph.outputs().size(), plain.graph.outputs().size());
}

TEST(Lora, RefusesWhatFitsNothing) {
  EXPECT_THROW(build_model(adapted_gpt2({"*.q_proj"})), ConfigError);
  EXPECT_THROW(build_model(adapted_gpt2({"*.c_attn"}, 13)), ConfigError);
}

}  // namespace
}  // namespace tutti::models
