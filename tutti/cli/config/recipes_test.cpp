// Tests the recipes of MLPerf HPC's closed division: every row of the reference convergence points
// is examples/cosmoflow.toml or deepcam.toml with the lines that their comments name, and has the
// reference's learning rates. It also tests MLPerf Training's points of ResNet-50 with LARS.

#include <gtest/gtest.h>

#include <cmath>
#include <numbers>
#include <sstream>
#include <string>
#include <vector>

#include "tutti/cli/config/config.h"
#include "tutti/train/settings/specs.h"

namespace tutti::cli {
namespace {

/// `lines`: words "KEY=VALUE" that replace values of the file.
train::LearningRateSchedule schedule_of(const std::string& file, int64_t batch, int64_t samples,
                                        const std::string& lines) {
  std::vector<Setting> flags = {{"batch.global", std::to_string(batch), "--set"}};
  std::istringstream words(lines);
  for (std::string word; words >> word;) {
    const size_t equals = word.find('=');
    flags.push_back({word.substr(0, equals), word.substr(equals + 1), "--set"});
  }
  const config::RunConfig config =
      read_config({.file = TUTTI_SOURCE_DIR "/examples/" + file, .flags = flags}).config;
  return train::learning_rate_schedule(config, samples / batch, batch);
}

/// The reference's schedule as in its source; epochs count from 0.
struct CosmoflowRow {
  int64_t batch;
  double peak, base;
  int warmup;
  std::vector<std::pair<int, double>> decay;  ///< epoch, factor of the peak rate
  std::string lines;

  double rate(int epoch) const {
    if (epoch < warmup) return epoch * (peak - base) / warmup + base;
    double factor = 1;
    for (const auto& [after, f] : decay)
      if (after < epoch) factor = f;
    return peak * factor;
  }
};

TEST(Recipes, CosmoflowHasTheReferencesRateInEachEpochOfEachRow) {
  const CosmoflowRow rows[] = {
      {32,
       0.001,
       0.00025,
       2,
       {{4, 0.25}, {6, 0.0625}},
       "optimizer.lr=0.001 schedule.warmup_epochs=2 schedule.milestones=5,7"},
      {64,
       0.001,
       0.001,
       4,
       {{16, 0.25}, {32, 0.0625}},
       "optimizer.lr=0.001 schedule.warmup_factor=1"},
      {128, 0.004, 0.001, 4, {{16, 0.25}, {32, 0.0625}}, {}},
      {512,
       0.006,
       0.0015,
       6,
       {{19, 0.5}, {21, 0.25}, {22, 0.125}, {23, 0.0625}},
       "optimizer.lr=0.006 schedule.warmup_epochs=6 schedule.milestones=20,22,23,24 "
       "schedule.gamma=0.5"},
      {1024,
       0.012,
       0.012,
       0,
       {{32, 0.25}, {64, 0.0625}},
       "optimizer.lr=0.012 schedule.warmup_epochs=0 schedule.milestones=33,65"}};
  constexpr int64_t kSamples = 524'288;
  for (const CosmoflowRow& row : rows) {
    const train::LearningRateSchedule schedule =
        schedule_of("cosmoflow.toml", row.batch, kSamples, row.lines);
    const int64_t per_epoch = kSamples / row.batch;
    for (int epoch = 0; epoch < 70; ++epoch)
      for (const int64_t step : {int64_t{0}, per_epoch / 2, per_epoch - 1})
        EXPECT_NEAR(schedule.rate(epoch * per_epoch + step), row.rate(epoch), 1e-12)
            << "batch " << row.batch << ", epoch " << epoch << ", step " << step;
  }
}

TEST(Recipes, CosmoflowsFactorsMayBeGivenAsTheRowsHaveThem) {
  constexpr int64_t kSamples = 524'288, kPerEpoch = kSamples / 512;
  const train::LearningRateSchedule schedule =
      schedule_of("cosmoflow.toml", 512, kSamples,
                  "schedule.milestones=20,22,23,24 schedule.factors=0.5,0.25,0.125,0.0625");
  EXPECT_NEAR(schedule.rate(21 * kPerEpoch), 0.5 * 0.004, 1e-12);
  EXPECT_NEAR(schedule.rate(24 * kPerEpoch), 0.0625 * 0.004, 1e-12);
}

TEST(Recipes, DeepcamHasTheReferencesRateInEachStepOfEachRow) {
  constexpr int64_t kSamples = 121'266;
  const train::LearningRateSchedule cosine = schedule_of("deepcam.toml", 128, kSamples, "");
  for (int64_t step = 0; step < 9000; step += 100)
    EXPECT_NEAR(cosine.rate(step), 0.00155 / 2 * (1 + std::cos(std::numbers::pi * step / 9000)),
                0.00155 * 2e-4)
        << step;
  struct Row {
    int64_t batch, warmup;
    double peak;
    std::vector<int64_t> milestones;
    std::string lines;
  };
  const Row rows[] = {
      {256, 0, 0.002, {4096, 8192}, "optimizer.lr=0.002 schedule.milestones=4096,8192"},
      {512,
       100,
       0.004,
       {2048, 4096},
       "optimizer.lr=0.004 schedule.milestones=2048,4096 schedule.warmup_steps=100"},
      {1024,
       200,
       0.004,
       {1100, 4096},
       "optimizer.lr=0.004 schedule.milestones=1100,4096 schedule.warmup_steps=200"},
      {2048,
       400,
       0.0055,
       {800},
       "optimizer.lr=0.0055 schedule.milestones=800 schedule.warmup_steps=400"}};
  for (Row row : rows) {
    row.lines += " schedule.name=steps schedule.milestone_unit=steps schedule.gamma=0.1";
    const train::LearningRateSchedule schedule =
        schedule_of("deepcam.toml", row.batch, kSamples, row.lines);
    for (int64_t step = 0; step < 9000; step += 50) {
      double rate = row.peak;
      for (const int64_t milestone : row.milestones) rate *= step >= milestone ? 0.1 : 1;
      // The reference's first step has the rate 0; here the first step is the first of the rise:
      // the two are one step apart.
      const double step_of_rise = row.warmup > 0 ? row.peak / static_cast<double>(row.warmup) : 0;
      if (step < row.warmup) rate = static_cast<double>(step) * step_of_rise;
      EXPECT_NEAR(schedule.rate(step), rate, step < row.warmup ? step_of_rise : 1e-12)
          << "batch " << row.batch << ", step " << step;
    }
  }
}

TEST(Recipes, ImagenetRisesAndFallsAsItsRowSays) {
  struct Row {
    int64_t batch;
    double rate;
    int64_t warmup, epochs;
    std::string lines;
  };
  const Row rows[] = {{8192, 17, 5, 44, {}},
                      {4096, 10, 5, 42, "optimizer.lr=10 run.epochs=42"},
                      {32768, 21.2, 16, 58,
                       "optimizer.lr=21.2 schedule.warmup_epochs=16 run.epochs=58 "
                       "optimizer.momentum=0.94 optimizer.weight_decay=2.5e-5"}};
  constexpr int64_t kSamples = 1'281'167;
  for (const Row& row : rows) {
    const train::LearningRateSchedule schedule =
        schedule_of("imagenet_resnet50.toml", row.batch, kSamples, row.lines);
    const int64_t per_epoch = kSamples / row.batch, risen = row.warmup * per_epoch,
                  last = row.epochs * per_epoch - 1;
    EXPECT_NEAR(schedule.rate(risen / 2), row.rate / 2, row.rate * 0.02) << row.batch;
    EXPECT_NEAR(schedule.rate(risen), row.rate, row.rate * 0.01) << row.batch;
    EXPECT_NEAR(schedule.rate((risen + last) / 2), row.rate / 4, row.rate * 0.01) << row.batch;
    EXPECT_NEAR(schedule.rate(last), 0, row.rate * 1e-4) << row.batch;
  }
}

}  // namespace
}  // namespace tutti::cli
