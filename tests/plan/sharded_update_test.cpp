// Ranks that each update their shard of every bucket end with the weights of one that updates
// everything, bit for bit, for every optimizer. Ranks are threads here; what they exchange is
// copied and added directly.

#include <gtest/gtest.h>

#include <barrier>
#include <bit>
#include <cstring>
#include <thread>

#include "tests/plan/plan_run.h"
#include "tutti/backend/cpu/cpu_backend.h"
#include "tutti/base/rng.h"
#include "tutti/parallel/shard.h"
#include "tutti/train/weights.h"

namespace tutti::test {
namespace {

using Kind = OptimizerSettings::Kind;

constexpr int kSteps = 2;
constexpr size_t kFloat = sizeof(float);

TrainingGraph network(const OptimizerSettings& optimizer) {
  TrainingGraphSpec spec;
  spec.model.name = "resnet8";
  spec.model.input = {3, 8, 8};
  spec.model.batch = 4;
  spec.optimizer = optimizer;
  spec.bucket_bytes = 256 << 10;
  return make_training_graph(spec);
}

BucketLayout layout_of(const Plan& plan) {
  BucketLayout layout;
  layout.bytes = plan.variables.parameter_bytes;
  for (const Variable& variable : plan.variables.parameters)
    layout.offsets.push_back(variable.offset);
  for (const PlanBucket& slice : plan.buckets) {
    Bucket& bucket = layout.buckets.emplace_back();
    bucket.begin = slice.offset;
    bucket.bytes = slice.bytes;
    for (size_t i = 0; i < layout.offsets.size(); ++i)
      if (layout.offsets[i] >= slice.offset && layout.offsets[i] < slice.offset + slice.bytes)
        bucket.members.push_back(static_cast<int>(i));
  }
  return layout;
}

/// The sums of gradients of a step, the same on all ranks.
void fill_gradients(const Plan& plan, int step, std::byte* gradients) {
  for (size_t i = 0; i < plan.variables.parameters.size(); ++i) {
    const Variable& variable = plan.variables.parameters[i];
    Rng rng(static_cast<uint64_t>(step), Purpose::test, i);
    std::vector<float> plain(static_cast<size_t>(variable.desc.elements()));
    for (float& x : plain) x = rng.normal();
    import_plain(variable, plain.data(), gradients);
  }
}

/// One rank: weights, states and gradients of its own.
struct Rank {
  Executor executor;
  Weights weights;
  Buffer gradients;
  Rank(const TrainingGraph& training, const Plan& plan, const Backend& backend)
      : executor(plan, backend), weights(plan.variables, 1),
        gradients(plan.variables.parameter_bytes) {
    weights.initialise(7);
    executor.bind({.parameters = weights.parameters(),
                   .state = weights.state(),
                   .gradients = gradients.data()});
    executor.set_scalar(training.lr, 0.05f);
    executor.set_scalar(training.gradient_scale, 0.25f);
  }
  void step(const Plan& plan, int number) {
    fill_gradients(plan, number, gradients.data());
    StepInfo info;
    info.step = number;
    executor.update(info);
  }
};

/// What is left after the steps: weights, then each kind of state.
struct Trained {
  std::vector<uint32_t> weights, state;
  Trained() = default;
  Trained(const Plan& plan, const Weights& from)
      : weights(plan.variables.parameter_bytes / kFloat),
        state(weights.size() * plan.variables.state_kinds.size()) {
    std::memcpy(weights.data(), from.parameters(), weights.size() * kFloat);
    std::memcpy(state.data(), from.state(), state.size() * kFloat);
  }
};

Trained train_whole(const TrainingGraph& training, const Plan& plan) {
  const CpuBackend backend;
  Rank rank(training, plan, backend);
  for (int step = 0; step < kSteps; ++step) rank.step(plan, step);
  return {plan, rank.weights};
}

/// Adds arrays of floats over ranks that meet here.
class Sum {
 public:
  explicit Sum(int ranks) : arrays_(static_cast<size_t>(ranks)), barrier_(ranks) {}
  void operator()(int rank, std::span<float> values) {
    arrays_[static_cast<size_t>(rank)].assign(values.begin(), values.end());
    barrier_.arrive_and_wait();
    std::ranges::fill(values, 0.0f);
    for (const std::vector<float>& array : arrays_)
      for (size_t i = 0; i < values.size(); ++i) values[i] += array[i];
    barrier_.arrive_and_wait();
  }
  void wait() { barrier_.arrive_and_wait(); }

 private:
  std::vector<std::vector<float>> arrays_;
  std::barrier<> barrier_;
};

Trained train_sharded(const TrainingGraph& training, const Plan& plan, int count) {
  const CpuBackend backend;
  const BucketLayout layout = layout_of(plan);
  std::vector<std::unique_ptr<Rank>> ranks;
  for (int r = 0; r < count; ++r) ranks.push_back(std::make_unique<Rank>(training, plan, backend));
  Sum sum(count);
  /// Of every array, the shards of all ranks put together: what an allgather leaves on each.
  const auto gathered = [&](auto&& array_of, std::byte* into) {
    for (size_t b = 0; b < plan.buckets.size(); ++b) {
      const std::vector<Shard> shards = shard_bounds(layout, static_cast<int>(b), count);
      for (size_t r = 0; r < shards.size(); ++r) {
        const size_t at = plan.buckets[b].offset + shards[r].begin;
        std::memmove(into + at, array_of(*ranks[r]) + at, shards[r].bytes());
      }
    }
  };
  const auto work = [&](int r) {
    Rank& rank = *ranks[static_cast<size_t>(r)];
    for (size_t b = 0; b < plan.buckets.size(); ++b) {
      const Shard shard = shard_bounds(layout, static_cast<int>(b), count)[static_cast<size_t>(r)];
      rank.executor.set_shard(static_cast<int>(b), shard.begin, shard.end);
    }
    rank.executor.set_exchange(
        {.ready = {},
         .poll = {},
         .arrived = {},
         .wait = {},
         .sum_norms = [&sum, r](int, std::span<float> values) { sum(r, values); }});
    std::vector<std::byte> all(plan.variables.parameter_bytes);
    for (int step = 0; step < kSteps; ++step) {
      rank.step(plan, step);
      sum.wait();
      gathered([](const Rank& other) { return other.weights.parameters(); }, all.data());
      sum.wait();
      std::memcpy(rank.weights.parameters(), all.data(), all.size());
    }
  };
  std::vector<std::thread> threads;
  for (int r = 0; r < count; ++r) threads.emplace_back(work, r);
  for (std::thread& thread : threads) thread.join();
  const size_t bytes = plan.variables.parameter_bytes;
  for (size_t k = 0; k < plan.variables.state_kinds.size(); ++k)
    gathered([&](const Rank& other) { return other.weights.state() + k * bytes; },
             ranks[0]->weights.state() + k * bytes);
  return {plan, ranks[0]->weights};
}

struct Case {
  const char* name;
  OptimizerSettings optimizer;
};

class ShardedUpdate : public testing::TestWithParam<Case> {};

TEST_P(ShardedUpdate, HasTheBitsOfTheWhole) {
  const TrainingGraph training = network(GetParam().optimizer);
  Plan plan =
      compile(training.graph, CpuBackend(), {.threads = 2, .layout = "b16c", .measure = false});
  ASSERT_GT(plan.buckets.size(), 1u);
  const Trained want = train_whole(training, plan);
  for (const int ranks : {2, 5}) {
    const Trained got = train_sharded(training, plan, ranks);
    EXPECT_TRUE(got.weights == want.weights) << ranks << " ranks";
    EXPECT_TRUE(got.state == want.state) << ranks << " ranks";
  }
  plan = compile(training.graph, CpuBackend(), {.threads = 3, .layout = "b16c", .measure = false});
  EXPECT_TRUE(train_whole(training, plan).weights == want.weights) << "3 threads";
}

INSTANTIATE_TEST_SUITE_P(
    Optimizers, ShardedUpdate,
    testing::Values(
        Case{"sgd", {.momentum = 0.9, .weight_decay = 1e-4}},
        Case{"nesterov",
             {.momentum = 0.9, .nesterov = true, .weight_decay = 1e-4, .exclude_norm = true}},
        Case{"adam", {.kind = Kind::adam, .weight_decay = 1e-4}},
        Case{"adamw", {.kind = Kind::adamw, .weight_decay = 1e-2}},
        Case{"lars",
             {.kind = Kind::lars, .momentum = 0.9, .weight_decay = 1e-4, .exclude_norm = true}},
        Case{"lamb",
             {.kind = Kind::lamb,
              .weight_decay = 1e-2,
              .exclude_bias = true,
              .exclude_norm = true,
              .eps = 1e-6}},
        Case{"lamb_everything", {.kind = Kind::lamb, .weight_decay = 1e-2}}),
    [](const auto& info) { return info.param.name; });

TEST(Update, WaitsOnceForEachBucketThoughSeveralStepsReadIt) {
  const TrainingGraph training =
      network({.kind = Kind::lars, .momentum = 0.9, .weight_decay = 1e-4, .exclude_norm = true});
  const CpuBackend backend;
  const Plan plan = compile(training.graph, backend, {.layout = "b16c", .measure = false});
  Rank rank(training, plan, backend);
  std::vector<int> waits(plan.buckets.size(), 0);
  rank.executor.set_exchange({.ready = {}, .poll = {}, .arrived = {}, .wait = [&](int bucket) {
                                ++waits[static_cast<size_t>(bucket)];
                                return reinterpret_cast<const float*>(
                                    rank.gradients.data() +
                                    plan.buckets[static_cast<size_t>(bucket)].offset);
                              }});
  rank.step(plan, 0);
  EXPECT_EQ(waits, std::vector<int>(plan.buckets.size(), 1));
  EXPECT_GT(plan.updates.size(), 2 * plan.buckets.size());
}

TEST(Update, RefusesShardsThatCutABlock) {
  const TrainingGraph training = network({.momentum = 0.9});
  const CpuBackend backend;
  const Plan plan = compile(training.graph, backend, {.layout = "b16c", .measure = false});
  Executor executor(plan, backend);
  EXPECT_NO_THROW(executor.set_shard(0, 0, plan.buckets[0].bytes));
  EXPECT_THROW(executor.set_shard(0, 0, plan.buckets[0].bytes + 64), std::exception);
  EXPECT_THROW(executor.set_shard(0, 4, plan.buckets[0].bytes), std::exception);
  EXPECT_THROW(executor.set_shard(0, plan.buckets[0].bytes, 0), std::exception);
}

TEST(Update, ShardedNormsNeedAnExchange) {
  const TrainingGraph training = network({.kind = Kind::lamb});
  const CpuBackend backend;
  const Plan plan = compile(training.graph, backend, {.layout = "b16c", .measure = false});
  Rank rank(training, plan, backend);
  rank.executor.set_shard(0, 0, 0);
  EXPECT_THROW(rank.step(plan, 0), std::exception);
}

}  // namespace
}  // namespace tutti::test
