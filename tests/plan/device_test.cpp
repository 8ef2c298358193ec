// A plan on an emulated device. With the kernels of the host it has the bits that a team of one
// thread gets, whatever order the device's streams run in: only the executor is another.

#include <algorithm>
#include <cstring>
#include <optional>
#include <span>
#include <tuple>

#include "tests/plan/device_training.h"
#include "tutti/backend/gpu/kernels/device_functions.h"
#include "tutti/comm/transport/inproc/thread_ranks.h"
#include "tutti/plan/run/stream_executor.h"
#include "tutti/train/step/training_step.h"

namespace tutti::test {
namespace {

class DeviceBits : public testing::TestWithParam<std::tuple<DType, bool>> {};

TEST_P(DeviceBits, HasTheBitsOfATeamOfOne) {
  const auto [dtype, staged] = GetParam();
  const train::TrainingGraph training = lenet_with_norm(dtype, kMomentum);
  const Trained want = of_a_team(training);
  ASSERT_NE(want.losses.front(), want.losses.back());
  for (uint64_t seed = 1; seed <= 5; ++seed) {
    const Emulated emulated({.seed = seed, .host_work_reads_memory = !staged});
    Training stream(training, emulated.backend);
    ASSERT_TRUE(dynamic_cast<const plan::StreamExecutor*>(stream.executor.get()));
    const Trained before(stream);
    stream.steps();
    EXPECT_TRUE(Trained(stream).parameters == before.parameters) << "before anybody settles";
    stream.executor->settle();
    expect_same(Trained(stream), want);
  }
}

INSTANTIATE_TEST_SUITE_P(Types, DeviceBits,
                         testing::Combine(testing::Values(DType::f32, DType::bf16),
                                          testing::Bool()),
                         [](const auto& info) {
                           return std::string(name_of(std::get<0>(info.param))) +
                                  (std::get<1>(info.param) ? "_staged" : "_in_place");
                         });

TEST(DevicePlan, OwnKernelsTrainAsTheHostsUnderEverySeed) {
  const train::TrainingGraph training =
      lenet_with_norm(DType::f32, {.momentum = 0.9, .clip_norm = 0.5});
  const Trained host = of_a_team(training);
  std::optional<Trained> first;
  for (uint64_t seed = 1; seed <= 5; ++seed) {
    const Emulated emulated({.seed = seed, .functions = backend::own_functions()},
                            GpuKernels::own_only);
    Training stream(training, emulated.backend);
    stream.steps();
    stream.executor->settle();
    const Trained got(stream);
    for (size_t step = 0; step < host.losses.size(); ++step)
      EXPECT_NEAR(got.losses[step], host.losses[step], 1e-4f) << "step " << step;
    if (!first) first = got;
    expect_same(got, *first);
  }
}

/// Adds the gradients of two micro-batches, as an exchange does: out of place, and not at once.
class Adding final : public plan::Exchanges {
 public:
  Adding(const plan::Plan& plan, const std::byte* gradients)
      : plan_(plan), gradients_(gradients), sum_(plan.variables.trained_bytes) {}
  void start(int exchange) override {
    const plan::PlanBucket& bucket = bucket_of(exchange);
    const auto* const from = reinterpret_cast<const float*>(gradients_ + bucket.offset);
    auto* const to = reinterpret_cast<float*>(sum_.data() + bucket.offset);
    for (size_t i = 0; i < bucket.bytes / sizeof(float); ++i) to[i] += from[i];
    ++started;
  }
  bool done(int exchange) override { return exchange % 2 == 0; }
  plan::ExchangeOutput finish(int exchange) override {
    ++finished;
    return {.at = sum_.data() + bucket_of(exchange).offset};
  }
  void begin_step() { std::memset(sum_.data(), 0, sum_.bytes()); }
  int started = 0, finished = 0;

 private:
  const plan::PlanBucket& bucket_of(int exchange) const {
    return plan_
        .buckets[static_cast<size_t>(plan_.exchanges[static_cast<size_t>(exchange)].bucket)];
  }
  const plan::Plan& plan_;
  const std::byte* const gradients_;
  device::Buffer sum_;
};

/// Runs steps of two micro-batches each, which somebody else adds.
Trained exchanged(Training& made) {
  Adding exchanges(made.plan, made.gradients.data());
  made.executor->set_exchanges(exchanges);
  for (int step = 0; step < kSteps; ++step) {
    made.executor->finish_update();
    exchanges.begin_step();
    made.pass(step);
    made.pass((step + 1) % kSteps, 1);
    made.update(step);
  }
  made.pass(0);  // runs what the last update has left
  made.executor->settle();
  EXPECT_EQ(exchanges.finished, kSteps * static_cast<int>(made.plan.buckets.size()));
  EXPECT_TRUE(std::ranges::all_of(made.gradients.as<float>(), [](float x) { return x == x; }))
      << "between parameters, too";
  return Trained(made);
}

TEST(DevicePlan, GradientsAreExchangedByTheHost) {
  const train::TrainingGraph training =
      lenet_with_norm(DType::f32, {.momentum = 0.9, .clip_norm = 0.5});
  const backend::CpuBackend cpu;
  Training team(training, cpu);
  ASSERT_GT(team.plan.buckets.size(), 2u);
  const Trained want = exchanged(team);
  for (uint64_t seed = 1; seed <= 5; ++seed) {
    const Emulated emulated({.seed = seed});
    Training stream(training, emulated.backend);
    expect_same(exchanged(stream), want);
  }
}

// More steps are put on the stream than there are slots for numbers, and all batches lie in the
// same memory, which changes as soon as run() returns.
TEST(DevicePlan, TheHostMayRunAhead) {
  const train::TrainingGraph training = lenet_with_norm(DType::f32, kMomentum);
  const auto trained = [&](const backend::Backend& backend) {
    Training made(training, backend);
    const graph::Value images = training.inputs[0].value;
    std::vector<float> memory(static_cast<size_t>(made.plan.desc(images).elements()));
    for (int step = 0; step < 2 * kSteps; ++step) {
      made.batches.bind(*made.executor, step % kSteps);
      std::memcpy(memory.data(), made.executor->result(images), memory.size() * sizeof(float));
      made.executor->bind({.statistics = made.weights.statistics(step % 2)});
      made.executor->bind_input(images, memory.data());
      made.executor->run({.seed = 1, .step = step, .replica = step % 2});
      std::ranges::fill(memory, 1e9f);
      made.update(step);
    }
    made.executor->settle();
    return Trained(made);
  };
  const Trained want = trained(backend::CpuBackend());
  for (uint64_t seed = 1; seed <= 5; ++seed) {
    const Emulated emulated({.seed = seed});
    expect_same(trained(emulated.backend), want);
  }
}

TEST(DevicePlan, WaitsOnceAStepAndOnceForEachBucketThatIsExchanged) {
  const train::TrainingGraph training = lenet_with_norm(DType::f32, kMomentum);
  const Emulated emulated({.seed = 1});
  Training stream(training, emulated.backend);
  const auto waits_of_step = [&] {
    const int64_t before = emulated.device->counts().waits;
    stream.pass(1);
    stream.update(1);
    return emulated.device->counts().waits - before;
  };
  stream.pass(0);  // brings the weights to the device
  stream.update(0);
  EXPECT_EQ(waits_of_step(), 1) << "for the loss";
  Adding exchanges(stream.plan, stream.gradients.data());
  stream.executor->set_exchanges(exchanges);
  EXPECT_EQ(waits_of_step(), 1 + std::ssize(stream.plan.buckets));
}

TEST(DevicePlan, WhatTheHostChangesAfterSettleIsUsedAfterPack) {
  const train::TrainingGraph training = lenet_with_norm(DType::f32, kMomentum);
  const auto halved = [&](const backend::Backend& backend) {
    Training made(training, backend);
    made.pass(0);
    made.update(0);
    made.executor->settle();
    const std::span values(reinterpret_cast<float*>(made.weights.parameters()),
                           made.plan.variables.parameter_bytes / sizeof(float));
    for (float& x : values) x *= 0.5f;
    std::memset(made.weights.state(), 0, made.plan.variables.trained_bytes);
    made.executor->pack();
    made.pass(1);
    made.update(1);
    made.executor->settle();
    return Trained(made);
  };
  const Emulated emulated({.seed = 1});
  expect_same(halved(emulated.backend), halved(backend::CpuBackend()));
}

TEST(DevicePlan, StatisticsAloneComeBackIfTheyAreAskedFor) {
  const train::TrainingGraph training = lenet_with_norm(DType::f32, kMomentum);
  const Trained want = of_a_team(training);
  const Emulated emulated({.seed = 2});
  Training stream(training, emulated.backend);
  const Trained before(stream);
  stream.steps();
  stream.executor->settle(plan::Kept::statistics);
  EXPECT_TRUE(Trained(stream).statistics == want.statistics);
  EXPECT_TRUE(Trained(stream).parameters == before.parameters);
  stream.executor->settle();
  expect_same(Trained(stream), want);
}

TEST(DevicePlan, AnotherExecutorFindsTheWeightsWhereTrainingHasLeftThem) {
  const train::TrainingGraph training = lenet_with_norm(DType::f32, kMomentum);
  const Emulated emulated({.seed = 3});
  Training stream(training, emulated.backend);
  stream.steps();
  stream.pass(0);
  stream.executor->settle(plan::Kept::statistics);
  const auto other = plan::make_executor(stream.plan, emulated.backend);
  other->bind(stream.weights.replica(0));
  other->pack();
  stream.batches.bind(*other, 0);
  other->run({.seed = 1});
  EXPECT_EQ(*static_cast<const float*>(other->result(training.losses.front())),
            stream.losses.back());
}

// Nothing is copied back, since the pass changes nothing that training keeps.
TEST(DevicePlan, SettleWaitsForAPassBeforeAnotherExecutorChangesTheWeights) {
  const train::TrainingGraph training = lenet_without_norm(kMomentum);
  const backend::CpuBackend cpu;
  Training team(training, cpu);
  team.pass(0);
  team.pass(1);
  for (uint64_t seed = 1; seed <= 5; ++seed) {
    const Emulated emulated({.seed = seed});
    Training stream(training, emulated.backend);
    stream.pass(0);
    const auto other = plan::make_executor(stream.plan, emulated.backend);
    other->bind(stream.weights.replica(0));
    other->pack();
    stream.batches.bind(*other, 1);
    other->run({.seed = 1, .step = 1});
    other->settle();
    stream.update(0);
    stream.executor->settle();
    EXPECT_EQ(*static_cast<const float*>(other->result(training.losses.front())),
              team.losses.back());
  }
}

TEST(DevicePlan, AnExecutorMayEndWithWorkUnderWay) {
  const train::TrainingGraph training = lenet_with_norm(DType::f32, kMomentum);
  const Trained want = of_a_team(training);
  for (uint64_t seed = 1; seed <= 5; ++seed) {
    const Emulated emulated({.seed = seed});
    Training(training, emulated.backend).run(0, 0);
    Training stream(training, emulated.backend);
    stream.steps();
    stream.executor->settle();
    expect_same(Trained(stream), want);
  }
}

/// Trains two replicas of two micro-batches each, as a run does; returns weights, state with the
/// average of weights, and both replicas' statistics.
std::vector<std::vector<std::byte>> trained_by_steps(const backend::Backend& backend) {
  const auto communicator = comm::make_single_communicator();
  train::TrainingStepSpec spec{.map = exchange::ReplicaMap(2, 1, 0), .accumulate = 2, .seed = 3};
  spec.network.training = lenet(DType::f32, {.momentum = 0.9, .clip_norm = 0.5, .ema = 0.9});
  spec.network.training.split = {.threads = 1, .tile_bytes = size_t{1} << 60, .slabs = 1};
  spec.network.plan.layout = config::ActivationLayout::last;
  spec.network.plan.tile_bytes = int64_t{1} << 60;
  spec.network.plan.measure = false;
  train::TrainingStep step(spec, backend, *communicator);
  step.start();
  std::vector<float> images(static_cast<size_t>(kBatch * 144));
  std::vector<int32_t> labels(kBatch);
  void* const batch[] = {images.data(), labels.data()};
  for (int s = 0; s < kSteps; ++s) {
    step.begin(s, 0.05f);
    for (int local = 0; local < 4; ++local) {
      Rng rng(static_cast<uint64_t>(4 * s + local), Purpose::test, 0);
      for (float& x : images) x = rng.normal();
      for (int32_t& label : labels) label = static_cast<int32_t>(rng.below(kClasses));
      step.run(local, batch);
    }
    step.update();
  }
  step.settle();
  EXPECT_EQ(step.take_gradient_norms().count, kSteps);
  const train::Weights& weights = step.weights();
  const plan::Variables& variables = weights.variables();
  return {bytes_of(weights.parameters(), variables.parameter_bytes),
          bytes_of(weights.state(), variables.trained_bytes * variables.state_kinds.size()),
          bytes_of(weights.statistics(0), variables.statistic_bytes),
          bytes_of(weights.statistics(1), variables.statistic_bytes)};
}

TEST(DevicePlan, ReplicasTrainAsOnATeam) {
  const auto want = trained_by_steps(backend::CpuBackend());
  for (uint64_t seed = 1; seed <= 5; ++seed)
    EXPECT_TRUE(trained_by_steps(Emulated({.seed = seed}).backend) == want) << seed;
}

}  // namespace
}  // namespace tutti::test
