#include "tutti/train/infer/language_network.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "tutti/backend/cpu/cpu_backend.h"
#include "tutti/base/error.h"
#include "tutti/base/expect_text.h"
#include "tutti/train/network/weights.h"

namespace tutti::train {
namespace {

constexpr int64_t kWindow = 8, kVocabulary = 11;

models::ModelSpec small_gpt2() {
  return {.name = "gpt2",
          .input = {kWindow},
          .input_field = "tokens",
          .target_field = "next",
          .inputs = {{.name = "tokens", .sample = {kWindow}, .classes = kVocabulary}},
          .targets = {{.name = "next", .sample = {kWindow}, .classes = kVocabulary}},
          .classes = kVocabulary,
          .width = 16,
          .depth = 2,
          .heads = 2};
}

models::ModelSpec small_llama() {
  models::ModelSpec model = small_gpt2();
  model.name = "llama";
  model.width = 24;
  model.heads = 4;
  model.key_heads = 2;
  model.hidden = {20};
  return model;
}

struct Written {
  backend::CpuBackend backend;
  LanguageNetwork network;
  Weights weights;

  explicit Written(const models::ModelSpec& model)
      : network(model, backend, {.threads = 2, .measure = false}),
        weights(network.plan().variables, 1) {
    weights.initialise(3);
    // Values that start at 0.02 are enlarged, so that tokens and positions matter.
    auto* all = reinterpret_cast<float*>(weights.parameters());
    for (size_t i = 0; i < network.plan().variables.trained_bytes / sizeof(float); ++i) all[i] *= 8;
    network.bind(weights.replica(0));
  }
};

std::vector<float> copied(std::span<const float> logits) { return {logits.begin(), logits.end()}; }

double distance(const std::vector<float>& a, const std::vector<float>& b) {
  double most = 0;
  for (size_t i = 0; i < a.size(); ++i)
    most = std::max(most, static_cast<double>(std::abs(a[i] - b[i])));
  return most;
}

TEST(LanguageNetwork, WhatStandsBehindTheTokensDoesNotMatter) {
  Written model(small_gpt2());
  const std::vector<int32_t> tokens = {3, 1, 4, 1, 5, 9, 2, 6};
  EXPECT_EQ(model.network.window(), kWindow);
  EXPECT_EQ(model.network.vocabulary(), kVocabulary);
  const std::vector<float> three = copied(model.network.whole_pass(std::span(tokens).first(3)));
  ASSERT_EQ(three.size(), 11u);
  EXPECT_EQ(copied(model.network.whole_pass(std::span(tokens).first(3))), three);
  std::vector<int32_t> others = tokens;
  others[1] = 7;
  EXPECT_GT(distance(copied(model.network.whole_pass(std::span(others).first(3))), three), 1e-3);
}

class KeptKeys : public testing::TestWithParam<models::ModelSpec> {};

TEST_P(KeptKeys, GiveTheLogitsOfAWholePass) {
  Written model(GetParam());
  ASSERT_TRUE(model.network.keeps());
  const auto expect_same = [&](const std::vector<int32_t>& tokens) {
    const std::vector<float> kept = copied(model.network.logits(tokens));
    EXPECT_LT(distance(kept, copied(model.network.whole_pass(tokens))), 1e-4) << tokens.size();
  };
  std::vector<int32_t> tokens;
  for (const int32_t token : {3, 1, 4, 1, 5, 9, 2, 6}) {
    tokens.push_back(token);
    expect_same(tokens);
  }
  tokens.erase(tokens.begin());  // the window moves
  tokens.push_back(5);
  expect_same(tokens);
  expect_same({3, 1, 4});           // fewer than were stored
  expect_same({3, 1, 4, 2, 2, 7});  // and several more
  expect_same({9});
  model.network.bind(model.weights.replica(0));
  expect_same({9, 4});  // no earlier token is stored
  model.network.bind(model.weights.replica(0));
  expect_same({2, 7, 1, 8, 2, 8, 1, 8});  // a full window at once
}

INSTANTIATE_TEST_SUITE_P(LanguageNetwork, KeptKeys, testing::Values(small_gpt2(), small_llama()),
                         [](const auto& info) { return info.param.name; });

TEST(LanguageNetwork, ScoresThatAreNoNumbersAreSeen) {
  Written model(small_gpt2());
  const plan::Variable* queries =
      model.network.plan().variables.find_parameter("h.0.attn.c_attn.bias");
  ASSERT_NE(queries, nullptr);
  reinterpret_cast<float*>(model.weights.parameters() + queries->offset)[0] = std::nanf("");
  model.network.bind(model.weights.replica(0));
  const std::vector<int32_t> tokens = {3, 1, 4};
  EXPECT_TRUE(std::isnan(model.network.whole_pass(tokens)[0]));
  EXPECT_TRUE(std::isnan(model.network.logits(tokens)[0]));
}

TEST(LanguageNetwork, RefusesModelsThatWriteNoText) {
  const backend::CpuBackend backend;
  const models::ModelSpec model{.name = "resnet8", .input = {3, 8, 8}};
  EXPECT_TRUE(throws<ConfigError>({"'resnet8' predicts no tokens"},
                                  [&] { LanguageNetwork(model, backend, {.measure = false}); }));
}

}  // namespace
}  // namespace tutti::train
