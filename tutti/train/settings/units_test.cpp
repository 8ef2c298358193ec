#include "tutti/train/settings/units.h"

#include <gtest/gtest.h>

#include <atomic>
#include <cmath>

#include "tutti/backend/cpu/cpu_backend.h"
#include "tutti/comm/transport/inproc/thread_ranks.h"
#include "tutti/models/registry.h"
#include "tutti/train/loop/evaluator.h"
#include "tutti/train/network/weights.h"
#include "tutti/train/settings/goal.h"
#include "tutti/train/settings/specs.h"

namespace tutti::train {
namespace {

/// Two numbers that depend on two others: a temperature in K, and another number.
class Temperatures final : public data::Dataset {
 public:
  int64_t size() const override { return 5; }
  const std::vector<data::Field>& fields() const override { return fields_; }
  void read(int64_t i, data::Sample& sample) const override {
    auto* const x = static_cast<float*>(sample.own(0));
    auto* const y = static_cast<float*>(sample.own(1));
    x[0] = static_cast<float>(i);
    x[1] = 1;
    y[0] = static_cast<float>(270 + 7 * i);
    y[1] = static_cast<float>(i % 2);
  }

 private:
  std::vector<data::Field> fields_ = {
      {.name = "x", .element = data::ElementType::f32, .shape = {2}},
      {.name = "y",
       .element = data::ElementType::f32,
       .shape = {2},
       .statistics = {.mean = {280, 0.5f}, .deviation = {12, 2}},
       .unit = "K"}};
};

config::RunConfig regression() {
  config::RunConfig config;
  config.model.name = "layers";
  config.model.layer = {{.entries = {{"type", std::string("dense")}}}};
  config.data.dataset = "arrays";
  config.data.transforms = {"y: add 1, normalise"};
  return config;
}

}  // namespace

TEST(Units, MetricsAndPredictionsAreThoseOfTheDataAndLossesAreNot) {
  const config::RunConfig config = regression();
  const Temperatures data;
  const models::ModelSpec model =
      model_spec(config, data, 2);  // the last of three batches is not full
  const auto metrics = metrics_of(model);
  for (const int ranks : {1, 2})
    comm::run_ranks(ranks, [&](comm::Communicator& communicator) {
      const backend::CpuBackend backend;
      split::SplitSettings split;
      split.grid = split::PartGrid({}, 1, ranks, communicator.rank());
      const auto network = compile_evaluation(model, split, backend, communicator);
      Weights weights(network->plan.variables, 1);
      weights.initialise(1);
      const data::SampleWriter writer = sample_writer(config, data, network->batch());
      Evaluator evaluator({*network, backend, communicator, data, writer}, metrics);
      evaluator.bind(weights.replica(0));
      std::vector<std::vector<float>> kept;
      const Quality quality = evaluator.run(5, 1, &kept);
      if (ranks > 1) return;

      // Without steps the same network returns what it has learned.
      const std::vector<data::ValueFunction> none = {{data.fields()[1], 2, {}}},
                                             steps = steps_of_targets(config, data, *network);
      std::vector<float> learned, restored;
      for (auto* to : {&learned, &restored}) {
        Evaluator other({*network, backend, communicator, data, writer,
                         to == &learned ? std::span(none) : std::span(steps)},
                        {});
        other.bind(weights.replica(0));
        other.predict(5, 1, [&](size_t, const float* y, int64_t count) {
          to->insert(to->end(), y, y + 2 * count);
        });
      }
      EXPECT_EQ(restored, kept[0]);
      double mae = 0, loss = 0;
      for (size_t i = 0; i < 5; ++i) {
        const double t[] = {270.0 + 7.0 * static_cast<double>(i), i % 2 ? 1.0 : 0.0},
                     mean[] = {280, 0.5}, deviation[] = {12, 2};
        for (size_t c = 0; c < 2; ++c) {
          const double y = learned[2 * i + c] * deviation[c] + mean[c] - 1;
          EXPECT_NEAR(restored[2 * i + c], y, 1e-4);
          mae += std::abs(y - t[c]) / 10;
          loss += std::pow(learned[2 * i + c] - (t[c] + 1 - mean[c]) / deviation[c], 2) / 10;
        }
      }
      EXPECT_NEAR(quality.value("mae"), mae, 1e-4);
      EXPECT_NEAR(quality.value("loss"), loss, 1e-5);
      EXPECT_GT(mae, 1.2 * std::sqrt(loss)) << "these two units cannot be told apart";
    });
}

TEST(Units, AreSaidWithWhatIsUndoneAndWhatIsNot) {
  config::RunConfig config = regression();
  const Temperatures data;
  const auto message_of = [&](const char* steps) {
    config.data.transforms = {steps};
    const models::ModelSpec model = model_spec(config, data, 1);
    EXPECT_EQ(prediction_units(model).at(0).field, "y");
    return unit_sentences(model).at(0);
  };
  EXPECT_EQ(message_of("y: add 1, normalise"),
            "predictions of 'y' and errors as mae are in K: 'add 1, normalise mean 280 0.5 std 12 "
            "2' is undone; losses are of the transformed numbers");
  EXPECT_EQ(message_of("y: crop 2, divide 2, clip -3 3"),
            "predictions of 'y' and errors as mae are in K: 'divide 2' is undone; losses are of "
            "the transformed numbers; 'crop 2, clip -3 3' is not undone");
  EXPECT_EQ(message_of("y: multiply 0"),
            "predictions of 'y' and errors as mae are in the units of the data; 'multiply 0' is "
            "not undone");
  config.loss.pointwise = ops::PointwiseLossKind::bce_with_logits;
  config.data.transforms = {"y: multiply 0.9, add 0.05"};
  const models::ModelSpec logits = model_spec(config, data, 1);
  EXPECT_TRUE(unit_sentences(logits).empty());
  EXPECT_EQ(prediction_units(logits).at(0).values,
            "logits: above 0 stands for one, below it for zero");
}

// In evaluations, a loss that the model itself defines equals the same loss of an objective: the
// mean over all samples, for any batches and ranks.
TEST(Units, LossesOfOnesOwnAreEvaluatedLikeOthers) {
  const auto build = [](models::ModelBuilder& m) {
    const graph::Value y = ops::dense(m.graph(), "fc", m.input(), {.outputs = 2});
    m.predict(y);
    if (!m.training() || !m.objectives()[0].own_loss) return;
    const graph::Value t = m.target(m.spec().target_field, {DType::f32, m.graph().shape(y), {}});
    for (const char* part : {"one", "other"})
      m.add_loss(ops::pointwise_loss(m.graph(), part, y, t, {.scale = 0.5f}));
  };
  for (const bool own : {true, false})
    models::register_model({.name = own ? "own-loss" : "its-loss",
                            .description = "two numbers of two",
                            .task = models::TaskKind::regress,
                            .input = {2},
                            .classes = 2,
                            .build = build,
                            .objectives = [own](const models::ModelSpec&) {
                              return std::vector<models::Objective>{{.own_loss = own}};
                            }});
  config::RunConfig config = regression();
  config.model.layer.clear();
  const Temperatures data;
  for (const int ranks : {1, 2, 3}) {
    std::vector<double> losses;
    for (const char* name : {"own-loss", "its-loss"}) {
      config.model.name = name;
      const models::ModelSpec model = model_spec(config, data, 2);
      std::atomic<double> loss{};
      comm::run_ranks(ranks, [&](comm::Communicator& communicator) {
        const backend::CpuBackend backend;
        split::SplitSettings split;
        split.grid = split::PartGrid({}, 1, ranks, communicator.rank());
        const auto network = compile_evaluation(model, split, backend, communicator);
        Weights weights(network->plan.variables, 1);
        weights.initialise(1);
        Goal goal = goal_of(config, model);
        const data::SampleWriter writer = sample_writer(config, data, network->batch());
        const auto of_losses = loss_writer(config, data, *network, goal);
        EXPECT_EQ(of_losses.has_value(), std::string(name) == "own-loss");
        Evaluator evaluator({.network = *network,
                             .backend = backend,
                             .communicator = communicator,
                             .dataset = data,
                             .writer = writer,
                             .losses = of_losses ? &*of_losses : nullptr},
                            goal.metrics);
        evaluator.bind(weights.replica(0));
        loss = evaluator.run(5, 1).value("loss");
      });
      losses.push_back(loss);
    }
    EXPECT_GT(losses[0], 0.01);
    EXPECT_NEAR(losses[0], losses[1], 1e-6) << ranks << " ranks";
  }
}

// A checkpoint stores what is needed to restore predictions for files without targets.
TEST(Units, AreKeptWithWhatWasLearned) {
  const Temperatures data;
  const std::vector<data::Field> kept = fields_of(learned_fields({data.fields()[1]}));
  EXPECT_EQ(kept.at(0).unit, "K");
  EXPECT_EQ(kept[0].statistics.mean, data.fields()[1].statistics.mean);
  EXPECT_EQ(kept[0].statistics.deviation, data.fields()[1].statistics.deviation);
  EXPECT_EQ(data::value_function(kept[0], data::parse_steps("y: normalise")).undone(),
            "normalise mean 280 0.5 std 12 2");
}

}  // namespace tutti::train
