#include "tutti/models/block/sequence_encoder.h"

#include <gtest/gtest.h>

#include "tutti/models/model_checks.h"

namespace tutti::models {
namespace {

/// Counts the parameters of the layers, the last norm, and the query with its keys and values.
int64_t layers_by_hand(int64_t depth, int64_t d, int64_t hidden) {
  const int64_t layer = 4 * d * d + 4 * d + 2 * d * hidden + hidden + d + 4 * d;
  return depth * layer + 2 * d + d + 2 * (d * d + d);
}

/// Signals of 3 channels at 24 samples in pieces of 4, with padding.
ModelSpec tiny_encoder(TaskKind task, const Shape& target) {
  ModelSpec spec{.name = "sequence-encoder",
                 .task = task,
                 .input = {3, 24},
                 .input_field = "signals",
                 .target_field = "wanted",
                 .batch = 2,
                 .classes = task == TaskKind::regress ? target.elements() : 5,
                 .width = 12,
                 .hidden = {20},
                 .depth = 2,
                 .heads = 3,
                 .kernel = 4};
  spec.inputs = {{.name = "signals", .sample = {3, 24}}, {.name = "padding", .sample = {6}}};
  spec.targets = {{.name = "wanted", .sample = target}};
  return spec;
}

Shape predicted(const ModelSpec& spec) {
  const ModelGraph model = build_model(spec);
  return model.graph.shape(model.outputs[0].prediction);
}

TEST(SequenceEncoder, HasTheParametersOfItsFormulas) {
  EXPECT_EQ(parameters_of({.name = "sequence-encoder"}),
            8 * 128 + 128 + layers_by_hand(4, 128, 512) + 128 * 10 + 10);
  EXPECT_EQ(parameters_of({.name = "sequence-encoder", .width = 64, .kernel = 8}),
            8 * 8 * 64 + 64 + layers_by_hand(4, 64, 256) + 64 * 10 + 10);
  EXPECT_EQ(parameters_of({.name = "token-encoder"}),
            256 * 128 + layers_by_hand(4, 128, 512) + 128 * 10 + 10);
  ModelSpec at_samples = tiny_encoder(TaskKind::regress, {2, 24});
  EXPECT_EQ(parameters_of(at_samples),  // without a query
            3 * 4 * 12 + 12 + layers_by_hand(2, 12, 20) - 12 - 2 * (12 * 12 + 12) + 12 * 2 * 4 + 2);
}

TEST(SequenceEncoder, PredictsSequencesAndTheirSamples) {
  EXPECT_EQ(predicted(tiny_encoder(TaskKind::classify, {})), (Shape{2, 5}));
  EXPECT_EQ(predicted(tiny_encoder(TaskKind::regress, {4})), (Shape{2, 4}));
  EXPECT_EQ(predicted(tiny_encoder(TaskKind::segment, {24})), (Shape{2, 5, 24}));
  EXPECT_EQ(predicted(tiny_encoder(TaskKind::regress, {2, 24})), (Shape{2, 2, 24}));
  ModelSpec each = tiny_encoder(TaskKind::regress, {2, 24});
  each.kernel = 0;  // each sample is a position
  each.inputs.resize(1);
  EXPECT_EQ(predicted(each), (Shape{2, 2, 24}));
}

TEST(SequenceEncoder, PaddingIsNoKey) {
  const ModelGraph model = build_model(tiny_encoder(TaskKind::classify, {}));
  ASSERT_EQ(model.inputs.size(), 2u);
  const std::vector<AttentionNode> masked = attentions_in(model.graph);
  for (const AttentionNode& node : masked) {
    EXPECT_EQ(node.attention.mask, ops::AttentionMask::keys) << node.name;
    EXPECT_EQ(node.in.back(), model.inputs[1].value) << node.name;
  }
  EXPECT_EQ(masked.size(), 3u);  // two layers and the query
  ModelSpec whole = tiny_encoder(TaskKind::classify, {});
  whole.inputs.resize(1);
  for (const AttentionNode& node : attentions_in(build_model(whole).graph))
    EXPECT_EQ(node.attention.mask, ops::AttentionMask::none) << node.name;
}

TEST(SequenceEncoder, TokensAreTheirOwnPadding) {
  ModelSpec spec{.name = "token-encoder", .input = {9}, .input_field = "bases", .batch = 2};
  spec.inputs = {{.name = "bases", .sample = {9}, .classes = 5}};
  const ModelGraph model = build_model(spec);
  EXPECT_EQ(model.inputs[0].classes, 5);
  EXPECT_EQ(model.graph.shape("embedding.weight"), (Shape{5, 128, 1}));
  for (const AttentionNode& node : attentions_in(model.graph))
    EXPECT_EQ(node.in.back(), model.inputs[0].value) << node.name;
  spec.inputs.push_back({.name = "padding", .sample = {9}});  // padding is then given by this field
                                                              // alone
  const ModelGraph padded = build_model(spec);
  ASSERT_EQ(padded.inputs.size(), 2u);
  for (const AttentionNode& node : attentions_in(padded.graph))
    EXPECT_EQ(node.in.back(), padded.inputs[1].value) << node.name;
  spec.inputs[0].classes = 0;
  EXPECT_THROW(build_model(spec), ConfigError);
}

TEST(SequenceEncoder, RefusesWhatDoesNotFit) {
  const auto refuse = [](auto change) {
    expect_refused(tiny_encoder(TaskKind::classify, {}), change);
  };
  refuse([](ModelSpec& s) { s.kernel = 5; });
  refuse([](ModelSpec& s) { s.heads = 5; });
  refuse([](ModelSpec& s) { s.width = 9; });
  refuse([](ModelSpec& s) { s.inputs[1].sample = {24}; });
  refuse([](ModelSpec& s) { s.inputs[0].sample = {24}; });
  EXPECT_THROW(build_model({.name = "token-encoder", .kernel = 2}), ConfigError);
}

}  // namespace
}  // namespace tutti::models
