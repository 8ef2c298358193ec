#include "tutti/models/network/gpt2.h"

#include <gtest/gtest.h>

#include "tutti/models/registry.h"
#include "tutti/ops/sequence/attention.h"

namespace tutti::models {
namespace {

ModelSpec tiny(ops::Mode mode = ops::Mode::train) {
  return {.name = "gpt2",
          .input = {8},
          .input_field = "tokens",
          .target_field = "next",
          .batch = 2,
          .classes = 11,
          .width = 12,
          .depth = 2,
          .heads = 3,
          .context = 16,
          .mode = mode};
}

int64_t parameters_named(const char* name) {
  return build_model({.name = name}).graph.parameter_count();
}

TEST(Gpt2, HasTheParametersOfThePublishedOnes) {
  EXPECT_EQ(parameters_named("gpt2"), 124'439'808);
  EXPECT_EQ(parameters_named("gpt2-medium"), 354'823'168);
  EXPECT_EQ(parameters_named("gpt2-large"), 774'030'080);
  EXPECT_EQ(parameters_named("gpt2-xl"), 1'557'611'200);
}

TEST(Gpt2, ParametersBearThePublishedNames) {
  const graph::Graph graph = build_model(tiny()).graph;
  for (const char* name :
       {"wte.weight", "wpe.weight", "h.0.ln_1.weight", "h.0.ln_1.bias", "h.0.attn.c_attn.weight",
        "h.0.attn.c_attn.bias", "h.1.attn.c_proj.weight", "h.1.attn.c_proj.bias", "h.1.ln_2.weight",
        "h.1.mlp.c_fc.weight", "h.1.mlp.c_proj.bias", "ln_f.weight", "ln_f.bias"})
    EXPECT_TRUE(graph.find(name).valid()) << name;
  EXPECT_EQ(graph.shape(graph.find("wpe.weight")), (Shape{16, 12}));
  EXPECT_EQ(graph.shape(graph.find("h.0.attn.c_attn.weight")), (Shape{36, 12, 1}));
  EXPECT_EQ(graph.with_role(graph::Role::parameter).size(), 2u + 2 * 12 + 2);
}

TEST(Gpt2, ProjectionsIntoTheResidualSumStartSmaller) {
  const graph::Graph graph = build_model(tiny()).graph;
  EXPECT_DOUBLE_EQ(graph[graph.find("h.0.attn.c_attn.weight")].init.value, 0.02);
  EXPECT_DOUBLE_EQ(graph[graph.find("h.0.attn.c_proj.weight")].init.value, 0.01);
  EXPECT_DOUBLE_EQ(graph[graph.find("h.0.mlp.c_proj.weight")].init.value, 0.01);
  EXPECT_EQ(graph[graph.find("h.0.mlp.c_proj.bias")].init.kind, graph::Init::Kind::zeros);
}

TEST(Gpt2, AttentionLeavesKeysOutInTrainingAlone) {
  const auto attentions = [](ops::Mode mode, std::optional<float> dropout) {
    ModelSpec spec = tiny(mode);
    spec.attention_dropout = dropout;
    std::vector<ops::AttentionAttributes> found;
    const ModelGraph model = build_model(spec);  // a temporary would end before its nodes are read
    for (const graph::Node& node : model.graph.nodes())
      if (const auto* op = dynamic_cast<const ops::Attention*>(node.op.get()))
        found.push_back(op->attention());
    return found;
  };
  const std::vector<ops::AttentionAttributes> some = attentions(ops::Mode::train, 0.1f);
  ASSERT_EQ(some.size(), 2u);
  EXPECT_EQ(some[0].dropout, 0.1f);
  EXPECT_NE(some[0].salt, some[1].salt) << "each layer its own keys";
  for (const auto& none : {attentions(ops::Mode::eval, 0.1f), attentions(ops::Mode::train, {})})
    for (const ops::AttentionAttributes& a : none) EXPECT_EQ(a.dropout, 0);
  ModelSpec llama = tiny();
  llama.name = "llama";
  llama.context = 0;
  llama.attention_dropout = 0.1f;
  EXPECT_THROW(build_model(llama), ConfigError);
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
  ModelSpec spec = tiny();
  spec.heads = 5;
  EXPECT_THROW(build_model(spec), ConfigError);
  spec = tiny();
  spec.context = 7;
  EXPECT_THROW(build_model(spec), ConfigError);
  spec = tiny();
  spec.input = {3, 8};
  EXPECT_THROW(build_model(spec), ConfigError);
  EXPECT_THROW(build_model({.name = "resnet20", .heads = 2}), ConfigError);
}

}  // namespace
}  // namespace tutti::models
