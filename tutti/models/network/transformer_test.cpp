#include "tutti/models/network/transformer.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "tutti/models/model_checks.h"

namespace tutti::models {
namespace {

ModelSpec tiny_transformer(ops::Mode mode = ops::Mode::train) {
  ModelSpec spec{.name = "transformer-base",
                 .input = {7},
                 .input_field = "source",
                 .target_field = "next",
                 .batch = 2,
                 .classes = 11,
                 .width = 12,
                 .hidden = {20},
                 .depth = 2,
                 .heads = 3,
                 .mode = mode};
  for (const char* name : {"source", "tokens"})
    spec.inputs.push_back({.name = name, .sample = {7}, .classes = 11});
  spec.targets.push_back({.name = "next", .sample = {7}, .classes = 11});
  return spec;
}

/// Counts the paper's layers, as its equations have them: projections without biases.
int64_t by_hand(int64_t vocabularies, int64_t d, int64_t hidden) {
  const int64_t attention = 4 * d * d, transform = 2 * d * hidden + hidden + d, norm = 2 * d;
  return vocabularies * d + 6 * (attention + transform + 2 * norm) +
         6 * (2 * attention + transform + 3 * norm);
}

TEST(Transformer, HasTheParametersOfThePaper) {
  // A vocabulary of 37,000 byte pairs for both languages; the paper says 65 and 213 million.
  EXPECT_EQ(parameters_of({.name = "transformer-base"}), 63'045'632);
  EXPECT_EQ(parameters_of({.name = "transformer-big"}), 214'171'648);
  EXPECT_EQ(by_hand(37000, 512, 2048), 63'045'632);
  EXPECT_EQ(by_hand(37000, 1024, 4096), 214'171'648);
  EXPECT_EQ(parameters_of({.name = "transformer-base", .embeddings = Embeddings::separate}),
            by_hand(2 * 37000, 512, 2048));
}

TEST(Transformer, OneWeightIsReadInThreePlaces) {
  const Graph graph = build_model(tiny_transformer()).graph;
  const Value weight = graph.find("embedding.weight");
  ASSERT_TRUE(weight.valid());
  int readers = 0;
  for (const graph::Node& node : graph.nodes()) readers += std::ranges::count(node.in, weight) > 0;
  EXPECT_EQ(readers, 3);
  EXPECT_FALSE(graph.find("encoder.embedding.weight").valid());
  ModelSpec spec = tiny_transformer();
  spec.embeddings = Embeddings::separate;
  spec.inputs[0].classes = 19;
  const Graph apart = build_model(spec).graph;
  EXPECT_EQ(apart.shape("encoder.embedding.weight"), (Shape{19, 12, 1}));
  EXPECT_EQ(apart.shape("decoder.embedding.weight"), (Shape{11, 12, 1}));
}

TEST(Transformer, PaddingOfTheSourceIsNoKey) {
  const ModelGraph model = build_model(tiny_transformer());
  ASSERT_EQ(model.inputs.size(), 2u);
  int masked = 0, causal = 0;
  for (const AttentionNode& node : attentions_in(model.graph)) {
    if (node.attention.mask == ops::AttentionMask::keys) {
      ++masked;
      EXPECT_EQ(node.in.back(), model.inputs[0].value) << node.name;
    }
    causal += node.attention.causal;
  }
  EXPECT_EQ(masked, 4);  // two in the encoder, two across
  EXPECT_EQ(causal, 2);
  const ModelGraph evaluation = build_model(tiny_transformer(ops::Mode::eval));
  EXPECT_EQ(evaluation.inputs.size(), 3u);
  EXPECT_EQ(evaluation.graph.shape(evaluation.outputs[0].prediction), (Shape{2, 2, 7}));
}

TEST(Transformer, RefusesWhatDoesNotFit) {
  expect_refused(tiny_transformer(), [](ModelSpec& spec) { spec.heads = 5; });
  // A vocabulary different from the target's.
  expect_refused(tiny_transformer(), [](ModelSpec& spec) { spec.inputs[0].classes = 19; });
  ModelSpec turned = tiny_transformer();
  std::swap(turned.inputs[0], turned.inputs[1]);
  EXPECT_THROW(build_model(turned), ConfigError);
  expect_refused(turned, [](ModelSpec& spec) { spec.inputs.resize(1); });
  EXPECT_THROW(build_model({.name = "gpt2", .embeddings = Embeddings::separate}), ConfigError);
}

}  // namespace
}  // namespace tutti::models
