// Ranks that each update their shard of every bucket end with the weights of one that updates all,
// bit for bit, for every optimizer. Ranks are threads; exchanges copy and add.

#include <gtest/gtest.h>

#include <barrier>
#include <cmath>
#include <cstring>
#include <thread>

#include "tests/plan/plan_run.h"
#include "tutti/backend/cpu/cpu_backend.h"
#include "tutti/base/numeric/rng.h"
#include "tutti/exchange/shard.h"
#include "tutti/ops/exchange.h"
#include "tutti/train/network/weights.h"

namespace tutti::test {
using exchange::Shard, exchange::shard_bounds, plan::Executor, plan::Plan;
namespace {

using Kind = config::OptimizerKind;

constexpr int kSteps = 2;
constexpr size_t kFloat = sizeof(float);

train::TrainingGraph network(const config::OptimizerSection& optimizer, bool sharded = false,
                             size_t bucket_bytes = 256 << 10) {
  train::TrainingGraphSpec spec;
  spec.model.name = "resnet8";
  spec.model.input = {3, 8, 8};
  spec.model.batch = 4;
  spec.optimizer = optimizer;
  spec.sharded_update = sharded;
  spec.bucket_bytes = bucket_bytes;
  return train::make_training_graph(spec);
}

Plan planned(const train::TrainingGraph& training, int threads) {
  return plan::compile(training.graph, backend::CpuBackend(),
                       {.threads = threads, .layout = "b16c", .measure = false});
}

exchange::BucketLayout layout_of(const Plan& plan) {
  exchange::BucketLayout layout;
  layout.bytes = plan.variables.parameter_bytes;
  for (const plan::Variable& v : plan.variables.parameters) layout.offsets.push_back(v.offset);
  for (const plan::PlanBucket& slice : plan.buckets) {
    exchange::Bucket& bucket = layout.buckets.emplace_back();
    bucket.begin = slice.offset;
    bucket.bytes = slice.bytes;
    for (size_t i = 0; i < layout.offsets.size(); ++i)
      if (layout.offsets[i] >= slice.offset && layout.offsets[i] < slice.offset + slice.bytes)
        bucket.members.push_back(static_cast<int>(i));
  }
  return layout;
}

/// Fills in the sums of gradients of a step, the same on all ranks.
void fill_gradients(const Plan& plan, int step, std::byte* gradients) {
  for (size_t i = 0; i < plan.variables.parameters.size(); ++i) {
    const plan::Variable& variable = plan.variables.parameters[i];
    Rng rng(static_cast<uint64_t>(step), Purpose::test, i);
    std::vector<float> plain(static_cast<size_t>(variable.desc.elements()));
    for (float& x : plain) x = rng.normal();
    plan::import_plain(variable, plain.data(), gradients);
  }
}

/// One rank: weights, states and gradients of its own.
struct Rank {
  std::unique_ptr<Executor> executor;
  train::Weights weights;
  device::Buffer gradients;
  Rank(const train::TrainingGraph& training, const Plan& plan, const backend::Backend& backend)
      : executor(plan::make_executor(plan, backend)), weights(plan.variables, 1),
        gradients(plan.variables.parameter_bytes) {
    weights.initialise(7);
    executor->bind({.parameters = weights.parameters(),
                    .state = weights.state(),
                    .gradients = gradients.data()});
    executor->set_scalar(training.lr, 0.05f);
    executor->set_scalar(training.gradient_scale, 0.25f);
  }
  void step(const Plan& plan, int number) {
    fill_gradients(plan, number, gradients.data());
    executor->update({.step = number});
  }
};

/// The values after the steps: weights, then each kind of state.
struct Trained {
  std::vector<uint32_t> weights, state;
  Trained() = default;
  Trained(const Plan& plan, const train::Weights& from)
      : weights(plan.variables.parameter_bytes / kFloat),
        state(weights.size() * plan.variables.state_kinds.size()) {
    std::memcpy(weights.data(), from.parameters(), weights.size() * kFloat);
    std::memcpy(state.data(), from.state(), state.size() * kFloat);
  }
};

Trained train_whole(const train::TrainingGraph& training, const Plan& plan) {
  const backend::CpuBackend backend;
  Rank rank(training, plan, backend);
  for (int step = 0; step < kSteps; ++step) rank.step(plan, step);
  return {plan, rank.weights};
}

/// Adds arrays of floats over ranks, which meet here.
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

/// One rank's exchanges: its range of every bucket, and norms' sums. The test gathers weights.
class RankExchanges final : public plan::Exchanges {
 public:
  RankExchanges(const Plan& plan, const Executor& executor, int rank, int count, Sum& sum)
      : plan_(plan), executor_(executor), rank_(rank), count_(count), sum_(sum),
        layout_(layout_of(plan)) {}
  void start(int) override {}
  bool done(int exchange) override { return !sums_norms(exchange); }  // ranks meet in finish()
  plan::ExchangeOutput finish(int exchange) override {
    plan::ExchangeOutput output;
    const auto at = std::ranges::find(plan_.buckets, exchange, &plan::PlanBucket::exchange);
    if (at != plan_.buckets.end()) {
      const Shard shard = shard_bounds(layout_, static_cast<int>(at - plan_.buckets.begin()),
                                       count_)[static_cast<size_t>(rank_)];
      output.range = plan::ExchangeOutput::Range{shard.begin, shard.end};
    } else if (sums_norms(exchange)) {
      const plan::PlanExchange& norms = plan_.exchanges[static_cast<size_t>(exchange)];
      sum_(rank_, {reinterpret_cast<float*>(executor_.address(norms.out[0])),
                   static_cast<size_t>(norms.out_desc[0].elements())});
    }
    return output;
  }

 private:
  bool sums_norms(int exchange) const {
    const auto node = static_cast<size_t>(plan_.exchanges[static_cast<size_t>(exchange)].node);
    return dynamic_cast<const ops::AllReduceNorms*>(plan_.graph.nodes()[node].op.get());
  }
  const Plan& plan_;
  const Executor& executor_;
  int rank_, count_;
  Sum& sum_;
  exchange::BucketLayout layout_;
};

Trained train_sharded(const train::TrainingGraph& training, const Plan& plan, int count) {
  const backend::CpuBackend backend;
  const exchange::BucketLayout layout = layout_of(plan);
  std::vector<std::unique_ptr<Rank>> ranks;
  for (int r = 0; r < count; ++r) ranks.push_back(std::make_unique<Rank>(training, plan, backend));
  Sum sum(count);
  /// Joins the shards of all ranks of every array, as an allgather does on each rank.
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
    RankExchanges exchanges(plan, *rank.executor, r, count, sum);
    rank.executor->set_exchanges(exchanges);
    std::vector<std::byte> all(plan.variables.parameter_bytes);
    for (int step = 0; step < kSteps; ++step) {
      rank.step(plan, step);
      rank.executor->settle();
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
  config::OptimizerSection optimizer;
};

class ShardedUpdate : public testing::TestWithParam<Case> {};

TEST_P(ShardedUpdate, HasTheBitsOfTheWhole) {
  const train::TrainingGraph training = network(GetParam().optimizer);
  Plan plan = planned(training, 2);
  ASSERT_GT(plan.buckets.size(), 1u);
  const Trained want = train_whole(training, plan);
  const train::TrainingGraph in_shards = network(GetParam().optimizer, true);
  const Plan sharded = planned(in_shards, 2);
  for (const int ranks : {2, 5}) {
    const Trained got = train_sharded(in_shards, sharded, ranks);
    EXPECT_TRUE(got.weights == want.weights) << ranks << " ranks";
    EXPECT_TRUE(got.state == want.state) << ranks << " ranks";
  }
  plan = planned(training, 3);
  EXPECT_TRUE(train_whole(training, plan).weights == want.weights) << "3 threads";
}

INSTANTIATE_TEST_SUITE_P(
    Optimizers, ShardedUpdate,
    testing::Values(
        Case{"sgd", {.momentum = 0.9, .weight_decay = 1e-4}},
        Case{"nesterov",
             {.momentum = 0.9, .nesterov = true, .weight_decay = 1e-4, .exclude = {"norm"}}},
        Case{"adam", {.name = Kind::adam, .weight_decay = 1e-4}},
        Case{"adamw", {.name = Kind::adamw, .weight_decay = 1e-2}},
        Case{"rmsprop", {.name = Kind::rmsprop, .weight_decay = 1e-4}},
        Case{"lars",
             {.name = Kind::lars, .momentum = 0.9, .weight_decay = 1e-4, .exclude = {"norm"}}},
        Case{"lamb",
             {.name = Kind::lamb, .weight_decay = 1e-2, .exclude = {"bias", "norm"}, .eps = 1e-6}},
        Case{"lamb_everything", {.name = Kind::lamb, .weight_decay = 1e-2}},
        Case{"clipped_sgd", {.momentum = 0.9, .weight_decay = 1e-4, .clip_norm = 7}},
        Case{"clipped_lars",
             {.name = Kind::lars, .momentum = 0.9, .exclude = {"norm"}, .clip_norm = 7}},
        Case{"clipped_lamb",
             {.name = Kind::lamb,
              .weight_decay = 1e-2,
              .exclude = {"norm"},
              .clip_norm = 7,
              .ema = 0.9,
              .eps = 1e-6}}),
    [](const auto& info) { return info.param.name; });

/// Returns the gradient's norm in a step, from plain copies in double precision.
double norm_in_double(const Plan& plan, const device::Buffer& gradients, double scale) {
  double sum = 0;
  for (const plan::Variable& variable : plan.variables.parameters) {
    std::vector<float> plain(static_cast<size_t>(variable.desc.elements()));
    plan::export_plain(variable, gradients.data(), plain.data());
    for (const float g : plain) sum += static_cast<double>(g) * static_cast<double>(g);
  }
  return std::abs(scale) * std::sqrt(sum);
}

/// The weights after a step of plain gradient descent, in their arena.
struct Clipped {
  float norm;
  double expected_norm;
  std::vector<float> before, after, gradients;
};
Clipped clipped_step(double limit, size_t bucket_bytes) {
  const train::TrainingGraph training = network({.clip_norm = limit}, false, bucket_bytes);
  const backend::CpuBackend backend;
  const Plan plan = planned(training, 2);
  Rank rank(training, plan, backend);
  const auto* const w = reinterpret_cast<const float*>(rank.weights.parameters());
  const size_t count = plan.variables.parameter_bytes / kFloat;
  Clipped made{};
  made.before.assign(w, w + count);
  rank.step(plan, 0);
  made.after.assign(w, w + count);
  const std::span<const float> gradients = rank.gradients.as<float>().first(count);
  made.gradients.assign(gradients.begin(), gradients.end());
  made.expected_norm = norm_in_double(plan, rank.gradients, 0.25);
  if (training.gradient_norm.valid())
    made.norm = *static_cast<const float*>(rank.executor->result(training.gradient_norm));
  return made;
}

TEST(Clipping, ShortensTheGradientToTheLimit) {
  const Clipped step = clipped_step(7, 256 << 10);
  ASSERT_GT(step.expected_norm, 20);
  EXPECT_NEAR(step.norm, step.expected_norm, 1e-6 * step.expected_norm);
  const double scale = 0.25 * 7 / (step.expected_norm + 1e-6);
  for (size_t i = 0; i < step.after.size(); ++i) {
    const double want = step.before[i] - 0.05 * scale * step.gradients[i];
    ASSERT_NEAR(step.after[i], want, 2e-7 * (1 + std::abs(want))) << i;
  }
}

TEST(Clipping, AGradientWithinTheLimitKeepsItsBits) {
  const Clipped without = clipped_step(0, 256 << 10), within = clipped_step(1e6, 256 << 10);
  EXPECT_GT(within.norm, 0);
  EXPECT_TRUE(without.after == within.after);
  EXPECT_FALSE(without.after == clipped_step(7, 256 << 10).after);
}

/// Bucket sizes are measured, and so may differ from run to run.
TEST(Clipping, BucketsChangeNoBitOfTheNorm) {
  const float norm = clipped_step(7, 256 << 10).norm;
  for (const size_t bytes : {size_t{1}, size_t{4} << 10, size_t{1} << 30})
    EXPECT_EQ(clipped_step(7, bytes).norm, norm) << bytes;
}

/// Counts the executor's calls; gradients stay where they are.
struct Counting final : plan::Exchanges {
  std::vector<int> finished;   ///< by exchange
  int late = -1, ranged = -1;  ///< has not arrived yet; gives the range
  plan::ExchangeOutput::Range range;
  explicit Counting(size_t exchanges) : finished(exchanges, 0) {}
  void start(int) override {}
  bool done(int exchange) override { return exchange != late; }
  plan::ExchangeOutput finish(int exchange) override {
    ++finished[static_cast<size_t>(exchange)];
    return exchange == ranged ? plan::ExchangeOutput{.range = range} : plan::ExchangeOutput{};
  }
};

/// A single rank, and its calls of exchanges.
struct Alone {
  const train::TrainingGraph training;
  const backend::CpuBackend backend;
  const Plan plan;
  Rank rank{training, plan, backend};
  Counting exchanges{plan.exchanges.size()};
  const size_t bytes = plan.buckets[0].bytes;

  explicit Alone(const config::OptimizerSection& optimizer, int threads = 1)
      : training(network(optimizer)),
        plan(plan::compile(training.graph, backend,
                           {.threads = threads, .layout = "b16c", .measure = false})) {
    exchanges.ranged = plan.buckets[0].exchange;
    exchanges.range = {0, bytes};
    rank.executor->set_exchanges(exchanges);
  }
};

TEST(Update, WaitsOnceForEachBucketThoughSeveralStepsReadIt) {
  Alone alone({.name = Kind::lars, .momentum = 0.9, .weight_decay = 1e-4, .exclude = {"norm"}});
  alone.rank.step(alone.plan, 0);
  EXPECT_EQ(alone.exchanges.finished, std::vector<int>(alone.plan.buckets.size(), 1));
  EXPECT_GT(alone.plan.updates.size(), 2 * alone.plan.buckets.size());
}

TEST(Update, WhatHasNotArrivedWaitsForSettle) {
  Alone alone({.momentum = 0.9});
  const int late = alone.exchanges.late = alone.plan.buckets.front().exchange;
  alone.rank.step(alone.plan, 0);
  std::vector<int> want(alone.plan.buckets.size(), 1);
  want[static_cast<size_t>(late)] = 0;
  EXPECT_EQ(alone.exchanges.finished, want);
  EXPECT_ANY_THROW(alone.rank.executor->set_scalar(alone.training.lr, 1));  // still to be read
  alone.rank.executor->settle();
  EXPECT_EQ(alone.exchanges.finished, std::vector<int>(alone.plan.buckets.size(), 1));
}

TEST(Update, RefusesRangesThatCutABlock) {
  const size_t bytes = Alone({.momentum = 0.9}).bytes;
  const auto step_with = [&](plan::ExchangeOutput::Range range) {
    Alone alone({.momentum = 0.9});
    alone.exchanges.range = range;
    alone.rank.step(alone.plan, 0);
  };
  EXPECT_THROW(step_with({0, bytes + 64}), std::exception);
  EXPECT_THROW(step_with({4, bytes}), std::exception);
  EXPECT_THROW(step_with({bytes, 0}), std::exception);
}

// The barrier stays broken: threads would leave the next step without their part of the work.
TEST(Update, AnExecutorWhoseTeamFailedIsNotUsedAgain) {
  Alone alone({.momentum = 0.9}, 2);
  alone.exchanges.range = {0, alone.bytes + 64};
  EXPECT_THROW(alone.rank.step(alone.plan, 0), std::exception);
  alone.exchanges.range = {0, alone.bytes};
  EXPECT_THROW(alone.rank.step(alone.plan, 0), InternalError);  // it is not used again
}

}  // namespace
}  // namespace tutti::test
