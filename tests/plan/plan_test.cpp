#include "tutti/plan/plan.h"

#include <gtest/gtest.h>

#include <cmath>
#include <set>

#include "tests/plan/plan_run.h"
#include "tests/plan/rectifiers.h"
#include "tutti/backend/cpu/cpu_backend.h"
#include "tutti/backend/cpu/matrix/matrix_tile.h"
#include "tutti/backend/reference/reference.h"
#include "tutti/base/expect_text.h"
#include "tutti/plan/bands.h"
#include "tutti/plan/run/executor.h"

namespace tutti::test {
namespace {

double norm(const std::vector<float>& x) {
  double sum = 0;
  for (const float v : x) sum += double{v} * v;
  return std::sqrt(sum);
}

/// Returns the relative distance of two vectors in the 2-norm.
double distance(const std::vector<float>& a, const std::vector<float>& b) {
  double sum = 0;
  for (size_t i = 0; i < a.size(); ++i) sum += (double{a[i]} - b[i]) * (double{a[i]} - b[i]);
  return std::sqrt(sum) / (norm(b) + 1e-6);
}

void expect_close(const std::map<std::string, std::vector<float>>& got,
                  const std::map<std::string, std::vector<float>>& want, double tolerance,
                  const std::string& how) {
  ASSERT_EQ(got.size(), want.size());
  for (const auto& [name, values] : want)
    EXPECT_LT(distance(got.at(name), values), tolerance) << name << " with " << how;
}

/// Runs the plan of the reference backend with one thread and everything in one tile: the plainest.
PlanRun reference_run(const train::TrainingGraph& training) {
  return run_once(training, backend::ReferenceBackend(),
                  {.layout = "plain", .tile_bytes = size_t{1} << 40, .measure = false});
}

TEST(Plan, TilesThreadsAndLayoutsChangeOnlyTheLastBits) {
  const train::TrainingGraph training = small_smooth_net(4);
  const PlanRun want = reference_run(training);
  for (const char* layout : {"b16c", "last"})
    for (const int threads : {1, 2, 4})
      for (const size_t tile_bytes : {size_t{1}, size_t{1} << 40}) {
        const std::string how =
            fmt::format("layout {}, {} threads, tiles of {} bytes", layout, threads, tile_bytes);
        const PlanRun got = run_once(
            training, backend::CpuBackend(),
            {.threads = threads, .layout = layout, .tile_bytes = tile_bytes, .measure = false});
        EXPECT_NEAR(got.loss, want.loss, 1e-4) << how;
        expect_close(got.gradients, want.gradients, 2e-3, how);
        expect_close(got.parameters, want.parameters, 1e-3, how);
        expect_close(got.statistics, want.statistics, 1e-4, how);
      }
}

// Batch norms end in ReLUs: all but gradients change only by rounding, whatever flips.
TEST(Plan, ReLUsOfTilesAndThreadsAreThoseOfTheReference) {
  const train::TrainingGraph training = small_residual_net(DType::f32, 4);
  const PlanRun want = reference_run(training);
  for (const char* layout : {"b16c", "last"}) {
    const PlanRun got =
        run_once(training, backend::CpuBackend(),
                 {.threads = 2, .layout = layout, .tile_bytes = 1, .measure = false});
    EXPECT_NEAR(got.loss, want.loss, 1e-4) << layout;
    expect_close(got.gradients, want.gradients, kFlipped, layout);
    expect_close(got.statistics, want.statistics, 1e-4, layout);
  }
}

TEST(Plan, MoreThreadsThanSamples) {
  const train::TrainingGraph training = small_smooth_net(2);
  const PlanRun want = reference_run(training);
  expect_close(
      run_once(training, backend::CpuBackend(), {.threads = 5, .layout = "b16c", .measure = false})
          .gradients,
      want.gradients, 2e-3, "5 threads for 2 samples");
}

TEST(Plan, Bf16FollowsF32) {
  const PlanRun want = reference_run(small_residual_net(DType::f32, 8));
  const PlanRun got = run_once(small_residual_net(DType::bf16, 8), backend::CpuBackend(),
                               {.threads = 2, .layout = "b16c", .measure = false});
  EXPECT_NEAR(got.loss, want.loss, 0.05);
  EXPECT_LT(distance(got.gradients.at("linear.weight"), want.gradients.at("linear.weight")), 0.05);
  expect_close(got.statistics, want.statistics, 0.05, "bf16");
}

TEST(Plan, KernelsBeyondTheErrorAreNotTaken) {
  const auto refused = [](DType dtype, double most_error) {
    const plan::Plan plan =
        plan::compile(small_residual_net(dtype, 4).graph, backend::CpuBackend(),
                      {.layout = "last", .measure = false, .most_error = most_error});
    int steps = 0;
    for (const plan::PlanBand& band : plan.bands)
      for (const plan::Step& step : band.steps)
        for (const std::string& why : step.refused)
          if (why.find("plan.bf16_error is 1") != std::string::npos) ++steps;
    return steps;
  };
  EXPECT_EQ(refused(DType::f32, 1), 0);
  EXPECT_EQ(refused(DType::bf16, plan::PlanOptions{}.most_error), 0) << "two dimensions";
  if (backend::matrix::kFastPairs)
    EXPECT_GT(refused(DType::bf16, 1), 0);
  else
    EXPECT_EQ(refused(DType::bf16, 1), 0);
}

TEST(Plan, TheSameRunGivesTheSameBits) {
  const train::TrainingGraph training = small_residual_net(DType::f32, 3);
  const plan::PlanOptions options{.threads = 3, .layout = "b16c", .measure = false};
  const PlanRun a = run_once(training, backend::CpuBackend(), options),
                b = run_once(training, backend::CpuBackend(), options);
  EXPECT_EQ(a.loss, b.loss);
  EXPECT_EQ(a.parameters, b.parameters);
}

TEST(Plan, RecordedChoicesGiveTheSamePlan) {
  const train::TrainingGraph training = small_residual_net(DType::f32, 4);
  const backend::CpuBackend backend;
  const plan::Plan measured = plan::compile(training.graph, backend, {});
  const plan::Plan again =
      plan::compile(training.graph, backend,
                    {.choices = plan::Choices::parse(measured.options.choices.to_string())});
  EXPECT_EQ(measured.to_string(), again.to_string());
  EXPECT_EQ(measured.hash(), again.hash());
  const plan::Plan other = plan::compile(small_residual_net(DType::f32, 5).graph, backend,
                                         {.choices = measured.options.choices});
  EXPECT_NE(measured.hash(), other.hash());
}

TEST(Plan, AStaleLayoutOfACheckpointIsAnErrorThatOfATuningFileIsChosenAnew) {
  const train::TrainingGraph training = small_residual_net(DType::f32, 4);
  const backend::CpuBackend backend;
  const plan::Plan plan = plan::compile(training.graph, backend, {.measure = false});
  std::string text = plan.options.choices.to_string();
  const size_t tab = text.find('\t', text.find("activation layout of graph"));
  ASSERT_EQ(text.substr(tab + 1, plan.layout.size() + 1), plan.layout + "\n") << text;
  text.replace(tab + 1, plan.layout.size(), "gone");
  plan::Choices stale = plan::Choices::parse(text);
  EXPECT_THROW(plan::compile(training.graph, backend, {.measure = false, .choices = stale}),
               ConfigError);
  stale.make_advice();
  const plan::Plan anew =
      plan::compile(training.graph, backend, {.measure = false, .choices = stale});
  EXPECT_EQ(anew.layout, plan.layout);
  EXPECT_EQ(anew.options.choices.to_string(), plan.options.choices.to_string());
}

TEST(Plan, OneBandPerNormalisationAndDirection) {
  const train::TrainingGraph training = small_residual_net(DType::f32, 4);
  const plan::Schedule schedule = plan::make_schedule(training.graph);
  // There are 19 batch norms: a barrier after each one's statistics and each one's gradient sums,
  // and one for the loss.
  EXPECT_LE(schedule.bands.size(), 2u * 19 + 2);
  size_t exchanges = 0;
  for (const plan::Band& band : schedule.bands) exchanges += band.starts.size();
  EXPECT_GT(exchanges, 1u);
  EXPECT_EQ(schedule.updates.size(), exchanges) << "one per bucket";
}

// Without batch norm the forward pass could be one band: each large layer waits only for its own
// update, and hands over its own gradient.
TEST(Plan, LargeParametersAreExchangedOneByOne) {
  train::TrainingGraphSpec spec;
  spec.model.name = "mlp";
  spec.model.hidden = {600, 600, 600};
  spec.model.batch = 2;
  spec.bucket_bytes = 64 << 10;
  const train::TrainingGraph training = train::make_training_graph(spec);
  const plan::Plan plan = plan::compile(training.graph, backend::CpuBackend(), {.measure = false});
  std::set<int> used, made;
  size_t large = 0;
  for (const plan::PlanBucket& bucket : plan.buckets) {
    if (bucket.bytes < size_t{1} << 20) continue;
    ++large;
    used.insert(bucket.first_use);
  }
  for (size_t b = 0; b < plan.bands.size(); ++b)
    for (const int e : plan.bands[b].starts)
      if (std::ranges::find(plan.buckets, e, &plan::PlanBucket::exchange)->bytes >= size_t{1} << 20)
        made.insert(static_cast<int>(b));
  EXPECT_GE(large, 3u);
  EXPECT_EQ(used.size(), large);
  EXPECT_EQ(made.size(), large);
}

train::TrainingGraph wide_mlp(size_t layers) {
  train::TrainingGraphSpec spec;
  spec.model.name = "mlp";
  spec.model.hidden.assign(layers, 600);
  spec.model.batch = 16;
  return train::make_training_graph(spec);
}

// Each thread sums a layer's gradient in memory that the next layer's gradient reuses.
TEST(Plan, TheThreadsOwnMemoryDoesNotGrowWithTheNumberOfLayers) {
  const auto scratch_of = [](size_t layers) {
    const backend::CpuBackend backend;
    const plan::Plan plan =
        plan::compile(wide_mlp(layers).graph, backend, {.threads = 4, .measure = false});
    const std::unique_ptr<plan::Executor> executor = plan::make_executor(plan, backend);
    const size_t scratch = executor->memory_bytes() - plan.arena_bytes - plan.packed_bytes;
    EXPECT_LE(scratch,
              4 * (plan.tile_scratch_bytes + plan.workspace_bytes + plan.state_bytes) + 8 * 64)
        << "what the plan says";
    EXPECT_LT(plan.state_bytes, size_t{4} << 20) << "two of the largest layers";
    return scratch;
  };
  EXPECT_EQ(scratch_of(8), scratch_of(3));
}

/// Counts how often it has to describe kernels.
class CountingBackend final : public backend::Backend {
 public:
  std::string_view name() const override { return cpu_.name(); }
  std::vector<backend::KernelCandidate> candidates(
      const backend::KernelRequest& request) const override {
    ++asked;
    return cpu_.candidates(request);
  }
  std::vector<Layout> activation_layouts(const Shape& shape, DType dtype) const override {
    return cpu_.activation_layouts(shape, dtype);
  }
  mutable int asked = 0;

 private:
  backend::CpuBackend cpu_;
};

TEST(Plan, KernelsAreDescribedOnceForAllThreads) {
  const train::TrainingGraph training = small_residual_net(DType::f32, 16);
  const auto asked_with = [&](int threads) {
    const CountingBackend backend;
    const plan::Plan plan =
        plan::compile(training.graph, backend,
                      {.threads = threads, .layout = "b16c", .tile_bytes = 1, .measure = false});
    backend.asked = 0;
    const std::unique_ptr<plan::Executor> executor = plan::make_executor(plan, backend);
    return backend.asked;
  };
  EXPECT_EQ(asked_with(16), asked_with(2)) << "all tiles hold one sample";
}

TEST(Plan, WhatStaysInABandIsNotStored) {
  const train::TrainingGraph training = small_residual_net(DType::f32, 64);
  const plan::Plan plan =
      plan::compile(training.graph, backend::CpuBackend(), {.layout = "b16c", .measure = false});
  size_t all = 0;
  for (const graph::ValueInfo& info : training.graph.values())
    if (info.role == graph::Role::result && info.type.batched) all += info.type.desc.bytes();
  EXPECT_LT(plan.arena_bytes, all / 3);
  // Gradients of a bucket are one slice, and every parameter has its gradient at its own offset.
  size_t end = 0;
  for (const plan::PlanBucket& bucket : plan.buckets) {
    EXPECT_EQ(bucket.offset, end);
    end = bucket.offset + bucket.bytes;
  }
  EXPECT_EQ(end, plan.variables.parameter_bytes);
}

TEST(Plan, AShapeThatDoesNotFitNamesTheLayer) {
  train::TrainingGraphSpec spec;
  spec.model.name = "resnet50";
  spec.model.input = {3, 4, 4};
  spec.model.batch = 2;
  EXPECT_NO_THROW(train::make_training_graph(spec));  // pads make even this fit
  spec.model.name = "lenet";
  EXPECT_TRUE(throws<ConfigError>({"layer '"}, [&] { train::make_training_graph(spec); }));
}

}  // namespace
}  // namespace tutti::test
