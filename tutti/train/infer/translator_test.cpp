#include "tutti/train/infer/translator.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "tutti/backend/cpu/cpu_backend.h"
#include "tutti/base/error.h"
#include "tutti/models/registry.h"
#include "tutti/train/network/weights.h"

namespace tutti::train {
namespace {

constexpr int64_t kPairPositions = 9, kPairVocabulary = 13;
constexpr int32_t kEndOfPairs = 12;

models::ModelSpec small_pairs_model() {
  const auto field = [](const char* name) -> models::ModelField {
    return {.name = name, .sample = {kPairPositions}, .classes = kPairVocabulary};
  };
  return {.name = "transformer-base",
          .input = {kPairPositions},
          .input_field = "source",
          .target_field = "next",
          .inputs = {field("source"), field("tokens")},
          .targets = {field("next")},
          .classes = kPairVocabulary,
          .width = 16,
          .hidden = {24},
          .depth = 2,
          .heads = 2};
}

/// Computes -log p of `written` and the end token after a source, by a whole pass of the network.
class WholePass {
 public:
  explicit WholePass(const models::ModelSpec& model) {
    models::ModelSpec spec = model;
    spec.mode = ops::Mode::eval;
    spec.batch = 1;
    built_ = models::build_model(spec);
    plan_ =
        plan::compile(built_.graph, backend_, {.threads = 1, .layout = "last", .measure = false});
    executor_ = plan::make_executor(plan_, backend_);
  }
  const plan::Plan& plan() const { return plan_; }
  void bind(const plan::ReplicaState& model) {
    executor_->bind(model);
    executor_->pack();
  }
  double surprise(const std::vector<int32_t>& source, const std::vector<int32_t>& written) {
    std::vector<int32_t> read(kPairPositions, -1), tokens(kPairPositions, -1),
        next(kPairPositions, -1);
    std::ranges::copy(source, read.begin());
    tokens[0] = kEndOfPairs;
    for (size_t i = 0; i < written.size(); ++i) {
      next[i] = written[i];
      if (i + 1 < kPairPositions) tokens[i + 1] = written[i];
    }
    if (written.size() < kPairPositions) next[written.size()] = kEndOfPairs;
    for (const models::GraphInput& input : built_.inputs)
      executor_->bind_input(input.value, input.field == "source"   ? read.data()
                                         : input.field == "tokens" ? tokens.data()
                                                                   : next.data());
    executor_->run({});
    const auto* each = static_cast<const float*>(executor_->result(built_.outputs[0].prediction));
    double sum = 0;
    for (size_t i = 0; i < kPairPositions; ++i) sum += next[i] >= 0 ? each[i] : 0;
    return sum;
  }

 private:
  backend::CpuBackend backend_;
  models::ModelGraph built_;
  plan::Plan plan_;
  std::unique_ptr<plan::Executor> executor_;
};

struct WithWeights {
  backend::CpuBackend backend;
  WholePass whole;
  Weights weights;

  WithWeights() : whole(small_pairs_model()), weights(whole.plan().variables, 1) {
    weights.initialise(5);
    whole.bind(weights.replica(0));
  }
  std::vector<WrittenSequence> written(const std::vector<std::vector<int32_t>>& sources,
                                       int64_t beam, int64_t side_by_side) {
    Translator translator(small_pairs_model(), side_by_side,
                          {.size = beam, .length_penalty = 0, .end_token = kEndOfPairs}, backend,
                          {.threads = 2, .layout = "last", .measure = false});
    Weights own(translator.variables(), 1);
    own.initialise(5);
    translator.bind(own.replica(0));
    return translator.write(sources);
  }
};

const std::vector<std::vector<int32_t>> kPairSources{
    {1, 2, 3}, {7}, {4, 4, 4, 4, 9, 0, 11, 5, 6}, {10, 8}, {2, 0, 2}};

TEST(Translator, WhatIsKeptGivesTheProbabilitiesOfAWholePass) {
  WithWeights model;
  for (const int64_t beam : {1, 3}) {
    const std::vector<WrittenSequence> all = model.written(kPairSources, beam, 2);
    ASSERT_EQ(all.size(), kPairSources.size());
    for (size_t s = 0; s < all.size(); ++s)
      EXPECT_NEAR(all[s].log_probability, -model.whole.surprise(kPairSources[s], all[s].tokens),
                  1e-4)
          << "source " << s << " with a beam of " << beam;
  }
}

TEST(Translator, SourcesDoNotDependOnWhatIsBesideThem) {
  WithWeights model;
  const std::vector<WrittenSequence> together = model.written(kPairSources, 3, 5),
                                     apart = model.written(kPairSources, 3, 1);
  for (size_t s = 0; s < kPairSources.size(); ++s)
    EXPECT_EQ(together[s].tokens, apart[s].tokens) << s;
}

/// The beam covers all sequences of up to two tokens.
TEST(Translator, ABeamAsWideAsTheVocabularyFindsTheBest) {
  WithWeights model;
  const WrittenSequence found = model.written({kPairSources[0]}, 200, 1).front();
  double best = INFINITY;
  const auto try_one = [&](const std::vector<int32_t>& tokens) {
    best = std::min(best, model.whole.surprise(kPairSources[0], tokens));
  };
  try_one({});
  for (int32_t a = 0; a < kEndOfPairs; ++a) {
    try_one({a});
    for (int32_t b = 0; b < kEndOfPairs; ++b) try_one({a, b});
  }
  EXPECT_LE(-found.log_probability, best + 1e-4);
}

TEST(Translator, RefusesModelsOfOneText) {
  const backend::CpuBackend backend;
  const models::ModelSpec model{.name = "gpt2",
                                .input = {8},
                                .input_field = "tokens",
                                .target_field = "next",
                                .classes = 11,
                                .width = 8,
                                .depth = 1,
                                .heads = 1};
  EXPECT_THROW(Translator(model, 1, {}, backend, {.measure = false}), ConfigError);
}

}  // namespace
}  // namespace tutti::train
