#include "tutti/train/network/training_graph.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "tutti/base/expect_text.h"

namespace tutti::train {
namespace {

TrainingGraph frozen(std::vector<std::string> freeze) {
  return make_training_graph({.model = {.name = "resnet8", .batch = 2},
                              .optimizer = {.momentum = 0.9},
                              .freeze = std::move(freeze)});
}

int64_t nodes_of(const graph::Graph& graph, std::string_view op) {
  return std::ranges::count_if(graph.nodes(),
                               [&](const graph::Node& node) { return node.op->name() == op; });
}

TrainingGraph language(int64_t batch, int64_t window, int threads,
                       const split::PartGrid& grid = {}) {
  return make_training_graph({.model = {.name = "gpt2",
                                        .input = {window},
                                        .batch = batch,
                                        .classes = 64,
                                        .width = 32,
                                        .depth = 1,
                                        .heads = 2},
                              .split = {.threads = threads, .grid = grid}});
}

/// Counts the nodes of this op that the team computes as a whole.
int64_t whole_nodes_of(const graph::Graph& graph, std::string_view op) {
  return std::ranges::count_if(graph.nodes(), [&](const graph::Node& node) {
    return node.op->name() == op && node.op->attributes().ends_with(" whole");
  });
}

}  // namespace

TEST(TrainingGraph, TheTeamSharesAttentionOfFewSamples) {
  for (const char* op : {"attention", "attention_grad"}) {
    EXPECT_EQ(whole_nodes_of(language(1, 256, 2).graph, op), 1);
    EXPECT_EQ(whole_nodes_of(language(3, 256, 2).graph, op), 1);
    EXPECT_EQ(whole_nodes_of(language(2, 256, 2).graph, op), 0);
    EXPECT_EQ(whole_nodes_of(language(17, 256, 2).graph, op), 0);
    EXPECT_EQ(whole_nodes_of(language(1, 256, 1).graph, op), 0);
  }
}

TEST(TrainingGraph, TheTeamSharesGradientsThatAreLargerThanWhatTheyAreOf) {
  const graph::Graph few = language(2, 8, 2).graph, many = language(2, 256, 2).graph;
  EXPECT_EQ(whole_nodes_of(few, "conv_backward_weights"), nodes_of(few, "conv_backward_weights"));
  EXPECT_EQ(whole_nodes_of(many, "conv_backward_weights"), 0);
  EXPECT_EQ(whole_nodes_of(language(2, 8, 1).graph, "conv_backward_weights"), 0);
}

TEST(TrainingGraph, NormsAndGeluOfPositionsAreComputedAgain) {
  for (const split::PartGrid& grid : {split::PartGrid(), split::PartGrid::of_tensors(2, 2, 0)}) {
    SCOPED_TRACE(fmt::format("{} rank(s) share layers", grid.tensor()));
    const graph::Graph graph = language(2, 256, 1, grid).graph;
    EXPECT_EQ(nodes_of(graph, "layer_norm"), 6);
    EXPECT_EQ(nodes_of(graph, "activation"), 2);
  }
}

TEST(TrainingGraph, LogitsOfALargeVocabularyAreNeverThereForAllPositions) {
  constexpr int64_t kVocabulary = 5000;
  TrainingGraphSpec spec;
  spec.model = {.name = "llama",
                .input = {16},
                .batch = 2,
                .classes = kVocabulary,
                .width = 32,
                .depth = 1,
                .heads = 2};
  for (const auto& [frozen, made] : {std::pair{"", "scale 1 dx dw"},
                                     {"lm_head.weight", "scale 1 dx"},
                                     {"model.*", "scale 1 dw"}}) {
    spec.freeze.clear();
    if (*frozen) spec.freeze = {frozen};
    const graph::Graph graph = make_training_graph(spec).graph;
    EXPECT_EQ(nodes_of(graph, "token_head"), 1);
    EXPECT_EQ(nodes_of(graph, "token_loss") + nodes_of(graph, "token_loss_grad"), 0);
    for (const graph::ValueInfo& value : graph.values())
      EXPECT_FALSE(value.type.batched && value.type.desc.shape.rank() > 1 &&
                   value.type.desc.shape[1] == kVocabulary)
          << value.name;
    const auto head = std::ranges::find(graph.nodes(), "token_head",
                                        [](const graph::Node& node) { return node.op->name(); });
    EXPECT_EQ(head->op->attributes(), made);
  }
}

TEST(TrainingGraph, FrozenLayersHaveNoBackwardPass) {
  const graph::Graph whole = frozen({}).graph, head = frozen({"conv1.*", "bn1.*", "layer*"}).graph;
  EXPECT_EQ(nodes_of(whole, "conv_backward_weights"), nodes_of(whole, "conv"));
  EXPECT_EQ(nodes_of(head, "conv"), nodes_of(whole, "conv"));
  EXPECT_EQ(nodes_of(head, "conv_backward_weights"), 0);
  EXPECT_EQ(nodes_of(head, "conv_backward_data"), 0);
  EXPECT_EQ(head.with_role(graph::Role::gradient).size(), 2u);
  EXPECT_EQ(head.with_role(graph::Role::state).size(), 2u);
  EXPECT_EQ(head.with_role(graph::Role::parameter).size(),
            whole.with_role(graph::Role::parameter).size());
}

TEST(TrainingGraph, BesideLoraNothingIsTrained) {
  const TrainingGraph training =
      make_training_graph({.model = {.name = "gpt2",
                                     .input = {8},
                                     .input_field = "tokens",
                                     .target_field = "next",
                                     .classes = 11,
                                     .width = 12,
                                     .depth = 2,
                                     .heads = 3,
                                     .lora = {.rank = 2, .layers = {"*.attn.c_attn"}}}});
  EXPECT_EQ(training.trained, 2 * 2 * (12 + 36));
  for (const graph::Value g : training.graph.with_role(graph::Role::gradient))
    EXPECT_TRUE(has_text(training.graph[training.graph[g].of].name, ".c_attn.lora_"));
}

TEST(TrainingGraph, WhatLiesBelowIsStillReached) {
  const graph::Graph whole = frozen({}).graph, middle = frozen({"layer2.*"}).graph;
  EXPECT_EQ(nodes_of(middle, "conv_backward_weights"),
            nodes_of(whole, "conv_backward_weights") - 2);
  EXPECT_EQ(nodes_of(middle, "conv_backward_data"), nodes_of(whole, "conv_backward_data"));
}

TEST(TrainingGraph, RefusesABatchNormOfOneValue) {
  TrainingGraphSpec spec{.model = {.name = "cosmoflow-small",
                                   .task = models::TaskKind::regress,
                                   .input = {1, 32, 32, 32},
                                   .batch = 1}};
  const std::string text = message_of<ConfigError>([&] { make_training_graph(spec); });
  EXPECT_TRUE(text.starts_with("layer 'bn5': a batch norm of batches with one")) << text;
  spec.split.grid = split::PartGrid({}, 2, 2, 0);
  EXPECT_NO_THROW(make_training_graph(spec)) << "two replicas have two values";
  spec.split.grid = {};
  spec.model.batch = 2;
  EXPECT_NO_THROW(make_training_graph(spec));
}

TEST(TrainingGraph, RefusesToFreezeNothingOrEverything) {
  const auto failure = [](const std::string& pattern) -> std::string {
    return message_of<ConfigError>("", [&] { frozen({pattern}); });
  };
  EXPECT_EQ(failure("fc.*").find("model.freeze: nothing is called 'fc.*'; there are conv1.weight"),
            0u);
  EXPECT_EQ(failure("*"), "model.freeze leaves no parameter that could be trained");
}

}  // namespace tutti::train
