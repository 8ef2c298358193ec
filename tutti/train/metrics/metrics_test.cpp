#include "tutti/train/metrics/metrics.h"

#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <limits>
#include <numbers>
#include <vector>

#include "tutti/base/error.h"
#include "tutti/base/numeric/rng.h"
#include "tutti/comm/transport/inproc/thread_ranks.h"
#include "tutti/models/registry.h"
#include "tutti/train/loop/evaluator.h"
#include "tutti/train/metrics/area_under_curve.h"
#include "tutti/train/settings/goal.h"

namespace tutti::train {
namespace {

models::ModelSpec task(models::TaskKind kind, int64_t classes) {
  return {.task = kind, .classes = classes};
}

Quality quality_of_judged(const models::ModelSpec& model, const Judged& judged, int64_t count) {
  Quality quality(metrics_of(model));
  for (int64_t i = 0; i < count; ++i) quality.add({&judged, 1}, i);
  return quality;
}

Quality quality_of(const models::ModelSpec& model, const Shape& prediction, const Shape& target,
                   std::span<const float> y, const void* t, int64_t count) {
  return quality_of_judged(model, {{y.data(), prediction}, {t, target}}, count);
}

Quality classified(std::span<const float> logits, std::span<const int32_t> labels,
                   int64_t classes) {
  return quality_of(task(models::TaskKind::classify, classes), {classes}, {}, logits, labels.data(),
                    std::ssize(labels));
}

}  // namespace

TEST(Metrics, OfClassesByHand) {
  const std::array<float, 9> logits = {1, 2, 3, 1, 1, 0, 1000, 0, -1000};
  const std::array<int32_t, 3> labels = {2, 1, 1};
  const Quality q = classified(logits, labels, 3);
  EXPECT_EQ(q.samples(), 3);
  EXPECT_DOUBLE_EQ(q.value("accuracy"), 1.0 / 3);  // the first of sample 1's equal logits
  const double first = std::log(std::exp(1.0) + std::exp(2.0) + std::exp(3.0)) - 3;
  const double second = std::log(2 * std::exp(1.0) + 1) - 1;
  EXPECT_NEAR(q.value("loss") * 3, first + second + 1000, 1e-6);
}

TEST(Metrics, BitsAByteAreOfWhatTokensStandFor) {
  models::ModelSpec model = task(models::TaskKind::language, 3);
  model.targets = {{.name = model.target_field, .sample = {4}, .classes = 3}};
  for (const auto& metric : metrics_of(model)) EXPECT_NE(metric->name(), "bits_per_byte");
  model.targets[0].class_bytes = {1, 5, 0};  // the last one ends a document
  // Two samples: -log p, then whether the token is the most likely.
  const std::array<float, 16> y = {1, 2, 3, 9, 1, 1, 1, 1, 0.5f, 0.25f, 9, 9, 1, 1, 1, 1};
  const std::array<int32_t, 8> tokens = {0, 1, 2, -1, 1, 1, -1, -1};
  const Quality q = quality_of(model, {2, 4}, {4}, y, tokens.data(), 2);
  EXPECT_NEAR(q.value("bits_per_byte"), 6.75 / 16 / std::numbers::ln2, 1e-6);
  EXPECT_NEAR(q.value("bits"), 6.75 / 5 / std::numbers::ln2, 1e-6);
}

TEST(Metrics, OfTokensByHand) {
  // Two samples of four positions: -log p, then whether the token is the most likely, which holds
  // for three of five tokens.
  const std::array<float, 16> y = {0.5f, 1, 2, 9, 1, 0, 1, 1, 0.25f, 0.25f, 9, 9, 1, 0, 1, 1};
  const std::array<int32_t, 8> tokens = {3, 0, 7, -1, 2, 5, -1, -1};
  models::ModelSpec model = task(models::TaskKind::language, 8);
  const Quality q = quality_of(model, {2, 4}, {4}, y, tokens.data(), 2);
  EXPECT_DOUBLE_EQ(q.value("accuracy"), 3.0 / 5);
  EXPECT_DOUBLE_EQ(q.value("loss"), 4.0 / 5);
  EXPECT_DOUBLE_EQ(q.value("perplexity"), std::exp(4.0 / 5));
}

TEST(Metrics, ClassWeightsCountInTheLossAsInTraining) {
  const std::array<float, 6> logits = {1, 2, 0, 1, 3, 0};
  const std::array<int32_t, 3> labels = {0, 1, 0};
  const double a = std::log1p(std::exp(1.0)), b = std::log1p(std::exp(-1.0)),
               c = std::log1p(std::exp(-3.0));
  models::ModelSpec model = task(models::TaskKind::classify, 2);
  model.loss.class_weights = {1, 4};
  const auto loss = [&] {
    return quality_of(model, {2}, {}, logits, labels.data(), 3).value("loss");
  };
  EXPECT_NEAR(loss(), (a + 4 * b + c) / 6, 1e-6);
  model.loss.mean_over = ops::MeanOver::labels;
  EXPECT_NEAR(loss(), (a + 4 * b + c) / 3, 1e-6);
}

TEST(Metrics, NaNIsNeitherCorrectNorHidden) {
  constexpr float nan = std::numeric_limits<float>::quiet_NaN();
  const Quality q = classified(std::array<float, 2>{1, nan}, std::array<int32_t, 1>{0}, 2);
  EXPECT_EQ(q.value("accuracy"), 0);
  EXPECT_TRUE(std::isnan(q.value("loss")));
}

TEST(Metrics, DoNotDependOnTheSplit) {
  Rng rng(1, Purpose::test, 0);
  std::vector<float> logits(1000 * 10);
  std::vector<int32_t> labels(1000);
  for (float& v : logits) v = 5 * rng.normal();
  for (int32_t& l : labels) l = static_cast<int32_t>(rng.below(10));
  Quality whole = classified(logits, labels, 10),
          parts(metrics_of(task(models::TaskKind::classify, 10)));
  for (size_t first : {size_t{900}, size_t{300}, size_t{0}}) {
    const size_t last = first == 0 ? 300 : first == 300 ? 900 : 1000;
    Quality part = classified(std::span(logits).subspan(first * 10),
                              std::span(labels).subspan(first, last - first), 10);
    for (size_t i = 0; i < part.sums().size(); ++i) parts.sums()[i] += part.sums()[i];
  }
  for (size_t i = 0; i < whole.sums().size(); ++i)
    EXPECT_EQ(parts.sums()[i], whole.sums()[i]) << i;  // to the bit
}

TEST(Metrics, TopFiveCountsTheFiveLargest) {
  const std::array<float, 14> logits = {7, 6, 5, 4, 3, 2, 1, 1, 1, 1, 1, 1, 1, 1};
  EXPECT_EQ(classified(logits, std::array<int32_t, 2>{4, 4}, 7).value("top5"), 1);
  EXPECT_EQ(classified(logits, std::array<int32_t, 2>{5, 5}, 7).value("top5"), 0);
}

TEST(Metrics, NameALabelThatDoesNotFit) {
  EXPECT_THROW(classified(std::array<float, 2>{}, std::array<int32_t, 1>{2}, 2), ConfigError);
}

// Three classes at four positions. Sample 0: class 2 does not occur. Sample 1: all wrong.
TEST(Metrics, IntersectionOverUnionIsTheMeanOverClassesOfEachSample) {
  const std::array<float, 24> y = {
      // clang-format off
      9, 9, 0, 0,  0, 0, 9, 9,  0, 0, 0, 0,
      0, 0, 0, 0,  0, 0, 0, 0,  9, 9, 9, 9};
  // clang-format on
  const std::array<int32_t, 8> labels = {0, 1, 1, 1, 0, 0, 1, 1};
  models::ModelSpec model = task(models::TaskKind::segment, 3);
  const Quality q = quality_of(model, {3, 2, 2}, {2, 2}, y, labels.data(), 2);
  const double first = (1.0 / 2 + 2.0 / 3 + 1) / 3;
  EXPECT_NEAR(q.value("iou"), (first + 0) / 2, 1e-7);
  EXPECT_NEAR(q.value("accuracy"), (3.0 / 4 + 0) / 2, 1e-7);
  const double right = std::log(1 + 2 * std::exp(-9.0)), wrong = right + 9;
  EXPECT_NEAR(q.value("loss"), ((3 * right + wrong) / 4 + wrong) / 2, 1e-6);
}

TEST(Metrics, OfNumbersByHand) {
  models::ModelSpec model = task(models::TaskKind::regress, 2);
  model.pointwise_loss.kind = ops::PointwiseLossKind::huber;
  const std::array<float, 4> y = {0.5f, -3, 1, 1}, t = {0, 0, 1, 1};
  const Quality q = quality_of(model, {2}, {2}, y, t.data(), 2);
  EXPECT_NEAR(q.value("mae"), (3.5 / 2 + 0) / 2, 1e-7);
  EXPECT_NEAR(q.value("loss"), ((0.125 + 2.5) / 2 + 0) / 2, 1e-7);
  EXPECT_FALSE(find_metric(metrics_of(model), "mae").higher_is_better());
  EXPECT_THROW(find_metric(metrics_of(model), "accuracy"), ConfigError);
}

// The expected numbers come from scikit-learn 1.9: precision_score, recall_score, f1_score,
// accuracy_score, roc_auc_score and log_loss over all samples.
TEST(Metrics, OfZerosAndOnesAreThoseOfScikitLearnWhateverTheBatchesAndRanks) {
  models::ModelSpec model = task(models::TaskKind::regress, 0);
  model.pointwise_loss.kind = ops::PointwiseLossKind::bce_with_logits;
  model.target_field = "click";
  model.targets = {{"click", {1}}};
  const std::array<float, 10> logits = {-1, 2, 0.5f, 0.5f, 3, -2, -0.1f, 1, -3, 0},
                              clicks = {0, 1, 1, 0, 0, 1, 1, 0, 0, 0};
  for (const int ranks : {1, 2, 3})
    comm::run_ranks(ranks, [&](comm::Communicator& communicator) {
      Quality quality(metrics_of(model));
      const Judged judged{{logits.data(), {1}}, {clicks.data(), {1}}};
      for (int64_t i = communicator.rank(); i < 10; i += ranks) quality.add({&judged, 1}, i);
      put_together(quality, communicator);
      EXPECT_NEAR(quality.value("precision"), 0.4, 1e-7);
      EXPECT_NEAR(quality.value("recall"), 0.5, 1e-7);
      EXPECT_NEAR(quality.value("f1"), 4.0 / 9, 1e-7);
      EXPECT_NEAR(quality.value("accuracy"), 0.5, 1e-7);
      EXPECT_NEAR(quality.value("auc"), 0.47916666666666663, 1e-7);
      EXPECT_NEAR(quality.value("loss"), 0.9863251909263608, 1e-7);
      EXPECT_EQ(quality.undefined(), "");
    });
  // Two maps of four numbers: all numbers have equal weight, f1 is 2/3 where the mean over maps is
  // 3/4.
  model.targets = {{"click", {4}}};
  const std::array<float, 8> y = {1, 1, -1, -1, -1, -1, -1, 2}, t = {1, 0, 1, 0, 0, 0, 0, 1};
  const Quality maps = quality_of(model, {4}, {4}, y, t.data(), 2);
  for (const char* metric : {"f1", "precision", "recall"})
    EXPECT_NEAR(maps.value(metric), 2.0 / 3, 1e-7) << metric;
  EXPECT_THROW(find_metric(metrics_of(model), "mae"), ConfigError);  // a logit is not a probability
}

TEST(Metrics, ZeroOverZeroIsZeroWithAWordAndNaNWithoutSamples) {
  models::ModelSpec model = task(models::TaskKind::regress, 0);
  model.pointwise_loss.kind = ops::PointwiseLossKind::bce_with_logits;
  model.targets = {{model.target_field, {1}}};
  const std::array<float, 2> y = {-1, -2}, t = {0, 0};
  const Quality none = quality_of(model, {1}, {1}, y, t.data(), 2);
  for (const char* metric : {"f1", "precision", "recall"}) EXPECT_EQ(none.value(metric), 0);
  EXPECT_EQ(none.undefined(),
            "f1 is 0 / 0 and counts as 0, precision is 0 / 0 and counts as 0, recall is 0 / 0 and "
            "counts as 0");
  EXPECT_TRUE(std::isnan(Quality(metrics_of(model)).value("f1")));
}

TEST(Metrics, ErrorsAreOfTheDataAndLossesOfWhatIsLearned) {
  models::ModelSpec model = task(models::TaskKind::regress, 0);
  model.targets = {{.name = model.target_field, .sample = {1}, .unit = "K"}};
  const std::array<float, 2> y = {280, 300}, t = {286, 288}, learned = {0, 2},
                             wanted = {0.6f, 0.8f};
  const Judged judged{
      {y.data(), {1}}, {t.data(), {1}}, {learned.data(), {1}}, {wanted.data(), {1}}};
  const Quality quality = quality_of_judged(model, judged, 2);
  EXPECT_EQ(quality.value("mae"), 9);
  EXPECT_NEAR(quality.value("loss"), (0.36 + 1.44) / 2, 1e-6);
  // 1e9 in f32 has steps of 64: the error is computed from values that keep their digits.
  const std::array<float, 2> far = {1e9f, 1e9f}, near = {1, 2}, none = {0, 0};
  const Judged large{{far.data(), {1}},  {far.data(), {1}},  {near.data(), {1}},
                     {none.data(), {1}}, {near.data(), {1}}, {none.data(), {1}}};
  EXPECT_EQ(quality_of_judged(model, large, 2).value("mae"), 1.5);
  // Units may make numbers very small or large: sums stay exact in any order.
  for (const float unit : {1e-15f, 1.0f, 1e9f}) {
    std::vector<float> a(1000), zero(1000, 0.0f);
    double sum = 0;
    for (size_t i = 0; i < a.size(); ++i) sum += a[i] = unit * (1 + 0.001f * static_cast<float>(i));
    Quality forth(metrics_of(model)), back(metrics_of(model));
    const Judged of_unit{{a.data(), {1}}, {zero.data(), {1}}};
    for (int64_t i = 0; i < 1000; ++i) {
      forth.add({&of_unit, 1}, i);
      back.add({&of_unit, 1}, 999 - i);
    }
    EXPECT_EQ(forth.value("mae"), back.value("mae")) << unit;
    EXPECT_NEAR(forth.value("mae") / (sum / 1000), 1, 2e-7) << unit;
  }
  EXPECT_EQ(to_text(find_metric(metrics_of(model), "mae"), 9), "mae 9.0000 K");
  EXPECT_EQ(to_text(find_metric(metrics_of(model), "mae"), 2.5e-7), "mae 2.5e-07 K");
}

// Undoing log1p may make a prediction infinite although the loss is a number.
TEST(Metrics, InfiniteAndNoNumberAreNeverTheBest) {
  constexpr float kInfinity = std::numeric_limits<float>::infinity(), kNaN = NAN;
  models::ModelSpec model = task(models::TaskKind::regress, 0);
  const std::array<float, 2> y = {std::expm1(100.0f), 1}, t = {1, 1}, learned = {100, 1};
  const Judged judged{{y.data(), {1}}, {t.data(), {1}}, {learned.data(), {1}}, {t.data(), {1}}};
  const Quality quality = quality_of_judged(model, judged, 2);
  EXPECT_EQ(quality.value("mae"), kInfinity);
  EXPECT_TRUE(std::isfinite(quality.value("loss")));
  EXPECT_EQ(quality.undefined(), "mae is infinite, which is never the best");
  for (const models::TaskKind kind : {models::TaskKind::regress, models::TaskKind::classify}) {
    Goal goal{.metrics = metrics_of(task(kind, 2))};
    goal.metric = goal.metrics[0].get();
    EXPECT_FALSE(goal.better(goal.metric->worst(), kNaN)) << "the first evaluation";
    EXPECT_FALSE(goal.better(kNaN, kNaN));
    EXPECT_FALSE(goal.better(kNaN, 1));
    EXPECT_TRUE(goal.better(1, kNaN));
    EXPECT_TRUE(goal.better(1, goal.metric->worst()));
    EXPECT_FALSE(goal.better(1, 1));
    EXPECT_EQ(goal.better(2, 1), goal.metric->higher_is_better());
  }
}

TEST(Metrics, LossHasTheWeightOfItsObjective) {
  models::ModelSpec model;
  model.name = "layers";
  model.layers = {
      {.entries = {
           {"type", std::string("dense")}, {"loss", std::string("mae")}, {"weight", 0.25}}}};
  const std::array<float, 2> y = {1, 4}, t = {0, 1};
  const Quality q = quality_of(model, {1}, {1}, y, t.data(), 2);
  EXPECT_EQ(q.value("mae"), 2);
  EXPECT_EQ(q.value("loss"), 0.5);
}

TEST(Metrics, OfOnesOwnAreNamedByObjectives) {
  class First final : public Metric {
   public:
    std::string_view name() const override { return "first"; }
    bool higher_is_better() const override { return true; }
    double of_sample(const SampleTensor& y, const SampleTensor&, int64_t i) const override {
      return y.numbers(i)[0] / 3.0;
    }
  };
  const size_t before = registered_metrics();
  register_metric(std::make_shared<First>());
  EXPECT_EQ(registered_metrics(), before + 1);
  EXPECT_THROW(register_metric(std::make_shared<First>()), ConfigError);

  models::ModelInfo own = models::find_model("lenet");
  own.name = "lenet-judged";
  own.objectives = [](const models::ModelSpec&) {
    return std::vector<models::Objective>{{.metrics = {"first"}}};
  };
  models::register_model(own);
  EXPECT_THROW(models::register_model(own), ConfigError);
  const auto metrics = metrics_of({.name = "lenet-judged", .classes = 3});
  EXPECT_EQ(metrics.front()->name(), "first");
  Quality quality(metrics);
  const std::array<float, 3> y = {1, 2, 3};
  const int32_t label = 1;
  const Judged judged{{y.data(), {3}}, {&label, {}}};
  quality.add({&judged, 1}, 0);
  EXPECT_EQ(quality.value("first"), 1.0 / 3);
}

TEST(Metrics, AreaUnderTheCurveCountsPairs) {
  EXPECT_EQ(area_under_curve({0, 1}, {2, 3}), 1);
  EXPECT_EQ(area_under_curve({2, 3}, {0, 1}), 0);
  EXPECT_EQ(area_under_curve({1, 1, 0}, {1, 2}), 5.0 / 6);  // four pairs in order, two equal ones
  EXPECT_TRUE(std::isnan(area_under_curve({}, {1})));
  EXPECT_TRUE(std::isnan(area_under_curve({1}, {})));
  EXPECT_TRUE(std::isnan(area_under_curve({1, NAN}, {1})));
  Rng rng(7, Purpose::test, 0);
  std::vector<float> zeros, ones;
  for (int i = 0; i < 500; ++i)
    (i % 3 == 0 ? ones : zeros).push_back(static_cast<float>(rng.below(40)) + (i % 3 == 0 ? 5 : 0));
  double right = 0;
  for (const float one : ones)
    for (const float zero : zeros) right += one > zero ? 1 : one == zero ? 0.5 : 0;
  EXPECT_EQ(area_under_curve(zeros, ones), right / static_cast<double>(zeros.size() * ones.size()));
}

TEST(Metrics, OneLogitOfASampleHasAnAreaUnderTheCurve) {
  models::ModelSpec model = task(models::TaskKind::regress, 0);
  model.pointwise_loss.kind = ops::PointwiseLossKind::bce_with_logits;
  model.target_field = "click";
  model.targets = {{"click", {1}}};
  const std::array<float, 5> logits = {-1, 2, 0.5f, 0.5f, 3}, clicks = {0, 1, 1, 0, 0};
  const auto judge = [&](std::initializer_list<int64_t> order) {
    Quality quality(metrics_of(model));
    const Judged judged{{logits.data(), {1}}, {clicks.data(), {1}}};
    for (const int64_t i : order) quality.add({&judged, 1}, i);
    quality.settle();
    return quality.value("auc");
  };
  EXPECT_EQ(judge({0, 1, 2, 3, 4}), 3.5 / 6);
  EXPECT_EQ(judge({4, 2, 0, 3, 1}), 3.5 / 6);
  for (const int ranks : {1, 2, 4, 7})  // two of seven get no sample
    comm::run_ranks(ranks, [&](comm::Communicator& communicator) {
      Quality quality(metrics_of(model));
      const Judged judged{{logits.data(), {1}}, {clicks.data(), {1}}};
      for (int64_t i = communicator.rank(); i < 5; i += ranks) quality.add({&judged, 1}, i);
      put_together(quality, communicator);
      EXPECT_EQ(quality.value("auc"), 3.5 / 6);
      EXPECT_EQ(quality.value("accuracy"), 3.0 / 5);
      EXPECT_EQ(quality.samples(), 5);
    });
  Quality counted(metrics_of(model), Quality::kMostScores + 1);
  EXPECT_FALSE(counted.exact());
  const Judged judged{{logits.data(), {1}}, {clicks.data(), {1}}};
  for (int64_t i = 0; i < 5; ++i) counted.add({&judged, 1}, i);
  counted.settle();
  EXPECT_EQ(counted.value("auc"), 3.5 / 6) << "scores far from each other have bins of their own";
  model.targets = {{"click", {2}}};  // maps have none: every position's logit would be kept
  for (const auto& metric : metrics_of(model)) EXPECT_NE(metric->name(), "auc");
  model.targets.clear();  // a configuration that names it is read before fields are known
  EXPECT_EQ(find_metric(metrics_of(model), "auc").name(), "auc");
}

/// The area's error in bins is at most half of the pairs that share one, and usually far less.
TEST(Metrics, AreaInBins) {
  Rng rng(1, Purpose::test, 0);
  std::vector<float> zeros, ones;
  ScoreBins bins, nan;
  for (int i = 0; i < 20000; ++i) {
    const bool one = rng.uniform() < 0.3f;
    const float score = rng.normal() + (one ? 0.8f : 0.0f);
    (one ? ones : zeros).push_back(score);
    bins.add(score, one);
  }
  EXPECT_NEAR(bins.area(), area_under_curve(zeros, ones), 2e-5);
  EXPECT_NE(bins.area(), 0.5);
  nan.add(0, true);
  nan.add(-0.0f, false);
  EXPECT_EQ(nan.area(), 0.5);
  nan.add(std::nanf(""), false);
  EXPECT_TRUE(std::isnan(nan.area()));
}

}  // namespace tutti::train
