#include "tutti/train/step/noise_scale.h"

#include <gtest/gtest.h>

#include <cmath>
#include <mutex>

#include "tutti/base/numeric/rng.h"
#include "tutti/comm/transport/inproc/thread_ranks.h"
#include "tutti/exchange/exchange.h"

namespace tutti::train {
namespace {

/// Two parameters of a quadratic problem, f(w) = |w - x|^2 / 2 with x normal around 0: the gradient
/// at w is w, and a sample's is w - x, so that |G|^2 = |w|^2 and tr(Sigma) = sigma^2 n.
constexpr size_t kSizes[] = {1500, 200};  // floats: more than a block, and less
constexpr double kAt = 0.25, kSigma = 2;  // every w is the same

double signal_of(size_t floats) { return kAt * kAt * static_cast<double>(floats); }
double noise_of(size_t floats) { return kSigma * kSigma * static_cast<double>(floats); }

plan::Variables two_variables() {
  plan::Variables variables;
  size_t at = 0;
  for (const size_t floats : kSizes) {
    variables.parameters.push_back({.name = fmt::format("p{}", variables.parameters.size()),
                                    .desc = {DType::f32, Shape{static_cast<int64_t>(floats)}, {}},
                                    .offset = at,
                                    .init = {}});
    at += (floats * sizeof(float) + 63) / 64 * 64;
  }
  variables.parameter_bytes = variables.trained_bytes = at;
  return variables;
}

exchange::BucketLayout layout_of(const plan::Variables& variables, size_t bucket_bytes) {
  std::vector<exchange::GradientEntry> entries;
  for (const plan::Variable& v : variables.parameters) entries.push_back({v.name, v.desc.bytes()});
  return exchange::partition_buckets(entries, bucket_bytes);
}

/// Fills in the mean gradient of `batch` samples of a micro-batch in a step.
void fill_gradient(const plan::Variables& variables, int64_t step, int micro_batch, int64_t batch,
                   float* arena) {
  Rng rng(5, Purpose::test, static_cast<uint64_t>(step * 100 + micro_batch));
  const double spread = kSigma / std::sqrt(static_cast<double>(batch));
  for (const plan::Variable& v : variables.parameters)
    for (size_t i = 0; i < v.desc.bytes() / sizeof(float); ++i)
      arena[v.offset / sizeof(float) + i] =
          static_cast<float>(kAt - spread * static_cast<double>(rng.normal()));
}

struct Problem {
  int micro_batches = 4, ranks = 1;
  int64_t steps = 50, every = 1, batch = 8;
  size_t bucket_bytes = 1 << 20;
  bool sharded = false;
};

NoiseMeter::Reading measure(const Problem& problem) {
  const plan::Variables variables = two_variables();
  const exchange::BucketLayout layout = layout_of(variables, problem.bucket_bytes);
  NoiseMeter::Reading result;
  std::mutex lock;
  comm::run_ranks(problem.ranks, [&](comm::Communicator& communicator) {
    const exchange::ReplicaMap map(problem.micro_batches, problem.ranks, communicator.rank());
    exchange::GradientExchange exchange(communicator, map, layout, {.sharded = problem.sharded});
    NoiseMeter meter(
        communicator, map, variables, layout,
        {.every = problem.every, .layers = true, .micro_batch_samples = problem.batch});
    for (int64_t step = 0; step < problem.steps; ++step) {
      meter.begin_step(step);
      for (int micro_batch = 0; micro_batch < map.local_count(); ++micro_batch) {
        fill_gradient(variables, step, map.replica(micro_batch), problem.batch,
                      exchange.slot(micro_batch));
        for (int b = 0; b < exchange.buckets(); ++b) {
          meter.add_micro_batch(micro_batch, b, exchange.slot(micro_batch));
          exchange.ready(micro_batch, b);
        }
      }
      for (int b = 0; b < exchange.buckets(); ++b) {
        exchange.wait(b);
        meter.add_sum(b, exchange.result(b));
      }
      communicator.barrier();
    }
    const NoiseMeter::Reading reading = meter.read();
    const std::scoped_lock held(lock);
    result = reading;
  });
  return result;
}

TEST(NoiseScale, EstimatesAreThoseOfTheFormula) {
  // |g_b|^2 = signal + noise / b: 3 + 20 / 2 and 3 + 20 / 10.
  const NoiseEstimate found = estimate_noise(13, 5, 2, 10);
  EXPECT_NEAR(found.signal, 3, 1e-12);
  EXPECT_NEAR(found.noise, 20, 1e-12);
}

TEST(NoiseScale, OfAQuadraticProblemIsItsOwn) {
  const NoiseMeter::Reading found = measure({.steps = 200});
  EXPECT_EQ(found.steps, 200);
  constexpr size_t kAll = kSizes[0] + kSizes[1];
  EXPECT_NEAR(found.all.noise / noise_of(kAll), 1, 0.01);
  EXPECT_NEAR(found.all.signal / signal_of(kAll), 1, 0.05);
  for (size_t i = 0; i < 2; ++i) {
    EXPECT_NEAR(found.layers[i].noise / noise_of(kSizes[i]), 1, 0.02) << i;
    EXPECT_NEAR(found.layers[i].signal / signal_of(kSizes[i]), 1, 0.15) << i;
  }
  EXPECT_NEAR(found.small_squares, signal_of(kAll) + noise_of(kAll) / 8, 0.02 * noise_of(kAll) / 8);
}

TEST(NoiseScale, HasTheSameBitsOnAnyNumberOfRanksAndInAnyBuckets) {
  const NoiseMeter::Reading one = measure({.micro_batches = 6, .steps = 5});
  for (const int ranks : {1, 2, 3})
    for (const size_t bucket_bytes : {size_t{1} << 20, size_t{1}})
      for (const bool sharded : {false, true}) {
        const NoiseMeter::Reading more = measure({.micro_batches = 6,
                                                  .ranks = ranks,
                                                  .steps = 5,
                                                  .bucket_bytes = bucket_bytes,
                                                  .sharded = sharded});
        EXPECT_EQ(one.all.signal, more.all.signal) << ranks << " " << sharded;
        EXPECT_EQ(one.all.noise, more.all.noise) << ranks << " " << sharded;
        EXPECT_EQ(one.layers[1].signal, more.layers[1].signal) << ranks << " " << sharded;
      }
}

TEST(NoiseScale, IsOfEveryNthStep) {
  EXPECT_EQ(measure({.steps = 9, .every = 4}).steps, 2);
  EXPECT_EQ(measure({.steps = 3, .every = 4}).steps, 0);
}

TEST(NoiseAverage, IsTheMeanOfEqualEstimatesAndForgetsOldOnes) {
  NoiseAverage average;
  EXPECT_TRUE(std::isnan(average.critical_batch()));
  average.add({2, 300}, 1);
  EXPECT_NEAR(average.critical_batch(), 150, 1e-9);
  average.add({-1, 300}, 1);  // one estimate may be below 0
  EXPECT_GT(average.critical_batch(), 150);
  std::map<std::string, double> kept;
  average.save("noise", kept);
  NoiseAverage again;
  again.restore("other", kept);
  EXPECT_TRUE(std::isnan(again.critical_batch()));
  again.restore("noise", kept);
  EXPECT_EQ(again.critical_batch(), average.critical_batch());
  again.add({5, 50}, 2000);
  EXPECT_NEAR(again.critical_batch(), 10, 1e-9);
}

}  // namespace
}  // namespace tutti::train
