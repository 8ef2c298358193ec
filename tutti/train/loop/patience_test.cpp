#include "tutti/train/loop/patience.h"

#include <gtest/gtest.h>

#include <cmath>
#include <memory>
#include <string_view>
#include <vector>

#include "tutti/train/loop/plateau.h"

namespace tutti::train {
namespace {

/// Returns a classifier's metric.
std::shared_ptr<const Metric> metric_named(std::string_view name) {
  for (const auto& metric : metrics_of({.task = models::TaskKind::classify, .classes = 10}))
    if (metric->name() == name) return metric;
  return nullptr;
}

config::RunConfig with_patience() {
  config::RunConfig config;
  config.run.min_improvement = 0.01;
  config.schedule.patience = 2;
  config.schedule.gamma = 0.5;
  config.schedule.final_factor = 0.2;
  return config;
}

TEST(Patience, CountsSinceTheLastValueThatWasBetterByMoreThanTheLeast) {
  const config::RunConfig config = with_patience();
  const auto metric = metric_named("accuracy");
  Patience patience(*metric, config.run.min_improvement);
  const double values[] = {0.5, 0.505, 0.509, 0.52, 0.4, NAN, 0.54};
  const int64_t waited[] = {0, 1, 2, 0, 1, 2, 0};
  for (size_t i = 0; i < std::size(values); ++i) {
    patience.add(values[i]);
    EXPECT_EQ(patience.waited(), waited[i]) << i;
  }
}

TEST(Patience, OfALossLowerIsBetter) {
  const auto metric = metric_named("loss");
  Patience patience(*metric, 0);
  for (const double value : {2.0, 1.0, 1.5, 1.0}) patience.add(value);
  EXPECT_EQ(patience.waited(), 2);
}

TEST(Patience, GoesOnWhereACheckpointWasAndAnewWithAnotherMetric) {
  const auto accuracy = metric_named("accuracy"), loss = metric_named("loss");
  Patience before(*accuracy, 0), after(*accuracy, 0), other(*loss, 0);
  for (const double value : {0.5, 0.1, 0.1}) before.add(value);
  std::map<std::string, double> metrics;
  before.save("stop", metrics);
  after.restore("stop", metrics);
  other.restore("stop", metrics);
  after.add(0.45);
  other.add(0.45);
  EXPECT_EQ(after.waited(), 3);
  EXPECT_EQ(other.waited(), 0);
}

TEST(Plateau, FallsAfterEachWaitDownToTheLeast) {
  const config::RunConfig config = with_patience();
  const auto metric = metric_named("accuracy");
  Plateau plateau(*metric, config);
  std::vector<double> factors;
  for (const double value : {0.5, 0.5, 0.5, 0.5, 0.6, 0.5, 0.5, 0.5, 0.5, 0.5, 0.5}) {
    plateau.add(value);
    factors.push_back(plateau.factor());
  }
  EXPECT_EQ(factors, (std::vector<double>{1, 1, 0.5, 0.5, 0.5, 0.5, 0.25, 0.25, 0.2, 0.2, 0.2}));
}

TEST(Plateau, GoesOnWhereACheckpointWas) {
  const config::RunConfig config = with_patience();
  const auto metric = metric_named("accuracy");
  Plateau whole(*metric, config);
  const std::vector<double> values = {0.5, 0.5, 0.5, 0.5, 0.6, 0.5, 0.5};
  for (const double value : values) whole.add(value);
  for (size_t cut = 0; cut <= values.size(); ++cut) {
    Plateau first(*metric, config), second(*metric, config);
    for (size_t i = 0; i < cut; ++i) first.add(values[i]);
    std::map<std::string, double> metrics;
    first.save(metrics);
    second.restore(metrics);
    for (size_t i = cut; i < values.size(); ++i) second.add(values[i]);
    EXPECT_EQ(second.factor(), whole.factor()) << cut;
  }
}

}  // namespace
}  // namespace tutti::train
