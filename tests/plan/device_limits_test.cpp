// Limits of a plan on an emulated device: the memory that it takes, the plans that it refuses, and
// calls that fail.

#include "tests/plan/device_step.h"
#include "tutti/base/error.h"
#include "tutti/comm/transport/inproc/thread_ranks.h"
#include "tutti/plan/device_memory.h"
#include "tutti/plan/planned_memory.h"
#include "tutti/train/network/network.h"

namespace tutti::test {
namespace {

TEST(DevicePlan, AnInputIsAResult) {
  const train::TrainingGraph training = lenet_with_norm(DType::f32, kMomentum);
  const Emulated emulated({.seed = 1});
  Training stream(training, emulated.backend);
  const std::vector<float> images(static_cast<size_t>(kBatch * 144), 0.5f);
  stream.executor->bind_input(training.inputs[0].value, images.data());
  EXPECT_EQ(stream.executor->result(training.inputs[0].value), images.data());
}

TEST(DevicePlan, TakesTheMemoryThatIsPlanned) {
  const train::TrainingGraph training = lenet_with_norm(DType::f32, kMomentum);
  const Emulated emulated({.seed = 1});
  {
    const Training stream(training, emulated.backend);
    const plan::Variables& variables = stream.plan.variables;
    const size_t mirrors = variables.parameter_bytes + variables.statistic_bytes +
                           variables.trained_bytes * variables.state_kinds.size();
    EXPECT_EQ(emulated.device->counts().bytes, stream.executor->memory_bytes() + mirrors);
    const plan::PlannedMemory planned = plan::planned_memory(stream.plan);
    // Nobody exchanges these gradients, so that they are not looked through.
    EXPECT_EQ(stream.executor->memory_bytes() + plan::device_finding_bytes(variables.trained_bytes),
              planned.results + planned.scratch + planned.gradients);
  }
  EXPECT_EQ(emulated.device->counts().bytes, 0u);
}

/// A checkpoint's copy lies in memory of the host, which the limit is not about.
TEST(DevicePlan, CountsWhatLiesOnTheDevice) {
  const Emulated emulated({.seed = 1});
  const auto communicator = comm::make_single_communicator();
  train::NetworkSpec spec;
  spec.training = lenet(DType::f32, kMomentum);
  spec.training.split = {.threads = 1, .tile_bytes = size_t{1} << 60, .slabs = 1};
  spec.plan.layout = config::ActivationLayout::last;
  spec.plan.measure = false;
  spec.plan.memory = int64_t{1} << 30;
  spec.warns = false;
  spec.held.gradients = 3;
  const auto counted = [&](const backend::Backend& backend) {
    return train::compile_network(spec, backend, *communicator)->training.options.memory;
  };
  for (const size_t copied : {size_t{0}, size_t{1000}}) {
    spec.copied_bytes = copied;
    const plan::MemoryLimit device = counted(emulated.backend), host = counted(emulated.host);
    EXPECT_EQ(device.copies, 0u);
    EXPECT_EQ(device.gradients, 3);
    EXPECT_GT(host.copies, 0u);
    EXPECT_EQ(host.gradients, 3);
  }
}

TEST(DevicePlan, ProfilesEachStep) {
  const train::TrainingGraph training = lenet_with_norm(DType::f32, kMomentum);
  const Emulated emulated({.seed = 1});
  Training stream(training, emulated.backend);
  stream.executor->set_profiling(true);
  stream.pass(0);
  stream.update(0);
  size_t steps = stream.plan.packs.size() + stream.plan.updates.size();
  for (const plan::PlanBand& band : stream.plan.bands) steps += band.steps.size();
  const auto timings = stream.executor->take_timings();
  EXPECT_EQ(timings.size(), steps);
  for (const plan::Executor::Timing& timing : timings) EXPECT_GT(timing.seconds, 0) << timing.name;
}

TEST(DevicePlan, RefusesTilesAndUpdatesInShards) {
  const Emulated emulated({.seed = 1});
  const auto made = [&](const train::TrainingGraph& training, const plan::PlanOptions& options) {
    const plan::Plan plan = plan::compile(training.graph, emulated.backend, options);
    return plan::make_executor(plan, emulated.backend);
  };
  plan::PlanOptions small = whole_batch();
  small.tile_bytes = 1;
  EXPECT_THROW(made(lenet_with_norm(DType::f32, kMomentum), small), ConfigError);
  train::TrainingGraphSpec sharded = lenet(DType::f32, kMomentum);
  sharded.sharded_update = true;
  EXPECT_THROW(made(train::make_training_graph(sharded), whole_batch()), ConfigError);
}

TEST(DevicePlan, RefusesARangeOfABucket) {
  struct Ranged final : plan::Exchanges {
    void start(int) override {}
    bool done(int) override { return true; }
    plan::ExchangeOutput finish(int) override { return {.range = plan::ExchangeOutput::Range{}}; }
  } exchanges;
  const train::TrainingGraph training = lenet_with_norm(DType::f32, kMomentum);
  const Emulated emulated({.seed = 1});
  Training stream(training, emulated.backend);
  stream.executor->set_exchanges(exchanges);
  stream.pass(0);
  EXPECT_THROW(stream.update(0), ConfigError);
}

TEST(DevicePlan, AnySeventhCallMayFail) {
  EXPECT_GT(failing_calls({lenet(DType::f32, kMomentum)}, 2, 1, 7), 20);
}

// The fifth step is recorded, and the seventh replayed again.
TEST(DevicePlan, AnyCallOfARecordingMayFail) {
  EXPECT_GT(failing_calls({lenet(DType::f32, kMomentum), 1, 2}, 7, 100, 19), 15);
}

}  // namespace
}  // namespace tutti::test
