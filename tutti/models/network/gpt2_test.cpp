#include "tutti/models/network/gpt2.h"

#include <gtest/gtest.h>

#include "tutti/models/model_checks.h"

namespace tutti::models {
namespace {

ModelSpec tiny(ops::Mode mode = ops::Mode::train) {
  ModelSpec spec = tiny_gpt2(mode);
  spec.context = 16;
  return spec;
}

TEST(Gpt2, HasTheParametersOfThePublishedOnes) {
  EXPECT_EQ(parameters_of({.name = "gpt2"}), 124'439'808);
  EXPECT_EQ(parameters_of({.name = "gpt2-medium"}), 354'823'168);
  EXPECT_EQ(parameters_of({.name = "gpt2-large"}), 774'030'080);
  EXPECT_EQ(parameters_of({.name = "gpt2-xl"}), 1'557'611'200);
}

TEST(Gpt2, ParametersBearThePublishedNames) {
  const Graph graph = build_model(tiny()).graph;
  for (const char* name :
       {"wte.weight", "wpe.weight", "h.0.ln_1.weight", "h.0.ln_1.bias", "h.0.attn.c_attn.weight",
        "h.0.attn.c_attn.bias", "h.1.attn.c_proj.weight", "h.1.attn.c_proj.bias", "h.1.ln_2.weight",
        "h.1.mlp.c_fc.weight", "h.1.mlp.c_proj.bias", "ln_f.weight", "ln_f.bias"})
    EXPECT_TRUE(graph.find(name).valid()) << name;
  EXPECT_EQ(graph.shape("wpe.weight"), (Shape{16, 12}));
  EXPECT_EQ(graph.shape("h.0.attn.c_attn.weight"), (Shape{36, 12, 1}));
  EXPECT_EQ(graph.with_role(graph::Role::parameter).size(), 2u + 2 * 12 + 2);
}

TEST(Gpt2, ProjectionsIntoTheResidualSumStartSmaller) {
  const Graph graph = build_model(tiny()).graph;
  EXPECT_DOUBLE_EQ(graph[graph.find("h.0.attn.c_attn.weight")].init.value, 0.02);
  EXPECT_DOUBLE_EQ(graph[graph.find("h.0.attn.c_proj.weight")].init.value, 0.01);
  EXPECT_DOUBLE_EQ(graph[graph.find("h.0.mlp.c_proj.weight")].init.value, 0.01);
  EXPECT_EQ(graph[graph.find("h.0.mlp.c_proj.bias")].init.kind, Init::Kind::zeros);
}

TEST(Gpt2, AttentionLeavesKeysOutInTrainingAlone) {
  const auto attentions = [](ops::Mode mode, std::optional<float> dropout) {
    ModelSpec spec = tiny(mode);
    spec.attention_dropout = dropout;
    return attentions_in(build_model(spec).graph);
  };
  const std::vector<AttentionNode> some = attentions(ops::Mode::train, 0.1f);
  ASSERT_EQ(some.size(), 2u);
  EXPECT_EQ(some[0].attention.dropout, 0.1f);
  EXPECT_NE(some[0].attention.salt, some[1].attention.salt) << "each layer its own keys";
  for (const auto& none : {attentions(ops::Mode::eval, 0.1f), attentions(ops::Mode::train, {})})
    for (const AttentionNode& node : none) EXPECT_EQ(node.attention.dropout, 0);
  expect_refused(tiny_gpt2(), [](ModelSpec& llama) {
    llama.name = "llama";
    llama.attention_dropout = 0.1f;
  });
}

TEST(Gpt2, JudgesWhatComesNext) {
  const ModelGraph training = build_model(tiny());
  EXPECT_EQ(training.inputs.size(), 1u);
  EXPECT_EQ(training.targets.size(), 1u);
  EXPECT_EQ(training.targets[0].field, "next");
  EXPECT_EQ(training.targets[0].classes, 11);
  EXPECT_EQ(training.graph.shape(training.outputs[0].prediction), (Shape{2, 1, 8}));
  const ModelGraph evaluation = build_model(tiny(ops::Mode::eval));
  EXPECT_EQ(evaluation.inputs.size(), 2u);  // the next tokens are read, too
  EXPECT_EQ(evaluation.targets.size(), 0u);
  EXPECT_EQ(evaluation.losses.size(), 0u);
  EXPECT_EQ(evaluation.graph.shape(evaluation.outputs[0].prediction), (Shape{2, 2, 8}));
}

TEST(Gpt2, ReadsTokensAndSegmentsByName) {
  const auto reading = [](std::vector<std::string> names) {
    ModelSpec spec = tiny();
    for (const std::string& name : names) spec.inputs.push_back({.name = name, .sample = {8}});
    spec.input_field = names.front();
    return spec;
  };
  const ModelGraph model = build_model(reading({"tokens", "segments"}));
  ASSERT_EQ(model.inputs.size(), 2u);
  EXPECT_EQ(model.inputs[0].classes, 11);
  EXPECT_EQ(model.inputs[1].field, "segments");
  EXPECT_EQ(model.inputs[1].classes, 0);  // any number of documents
  EXPECT_EQ(build_model(reading({"tokens"})).inputs.size(), 1u);
  EXPECT_THROW(build_model(reading({"segments", "tokens"})), ConfigError);
  EXPECT_THROW(build_model(reading({"tokens", "source"})), ConfigError);
  EXPECT_THROW(build_model(reading({"source"})), ConfigError);
}

TEST(Gpt2, RefusesSizesThatDoNotFit) {
  expect_refused(tiny(), [](ModelSpec& spec) { spec.heads = 5; });
  expect_refused(tiny(), [](ModelSpec& spec) { spec.context = 7; });
  expect_refused(tiny(), [](ModelSpec& spec) { spec.input = {3, 8}; });
  EXPECT_THROW(build_model({.name = "resnet20", .heads = 2}), ConfigError);
}

}  // namespace
}  // namespace tutti::models
