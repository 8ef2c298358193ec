#include "tutti/exchange/bucket_sum.h"

#include <gtest/gtest.h>

#include <fmt/format.h>

#include "tutti/base/numeric/rng.h"
#include "tutti/comm/transport/inproc/thread_ranks.h"

namespace tutti::exchange {
namespace {

constexpr size_t kFloats = 40'000;
constexpr size_t kBytes = kFloats * sizeof(float);

std::vector<comm::CompressionSpec> ramp(const std::string& method, int phases) {
  std::vector<comm::CompressionSpec> specs;
  double ratio = 0.25;
  for (int i = 0; i < phases; ++i, ratio /= 4)
    specs.push_back(comm::parse_compression(fmt::format("{}:{}", method, ratio)));
  return specs;
}

/// One rank's bucket, summed with a ramp of densities.
struct Ramped {
  Ramped(comm::Communicator& c, const std::string& method, int phases)
      : groups(c), gradient(kFloats), dense(kFloats), sum(c,
                                                          {.name = "bucket 1",
                                                           .kind = comm::Collective::allreduce,
                                                           .count = kFloats,
                                                           .input = gradient.data(),
                                                           .output = dense.data()},
                                                          dense.data()),
        specs(ramp(method, phases)) {
    sum.compress(c,
                 {.name = "bucket 1",
                  .count = kFloats,
                  .compression = {},
                  .parts = {gradient.data()},
                  .groups = &groups},
                 specs);
  }
  /// Returns the sum of one step, compressed as `phase` says.
  std::vector<float> step(uint64_t number, size_t phase, int rank) {
    Rng rng(number, Purpose::test, static_cast<uint64_t>(rank));
    for (float& x : gradient) x = rng.normal();
    sum.choose(specs[phase], number);
    sum.operation().start();
    sum.operation().wait();
    return {sum.result(), sum.result() + kFloats};
  }
  comm::NodeGroups groups;
  std::vector<float> gradient, dense;
  BucketSum sum;
  std::vector<comm::CompressionSpec> specs;
};

TEST(BucketSum, ARampNeedsTheMemoryOfItsDensestPhase) {
  for (const std::string method : {"topk", "hitopk"})
    for (const int ranks : {2, 4})
      comm::run_ranks(ranks, [&](comm::Communicator& c) {
        const size_t one = Ramped(c, method, 1).sum.compression_bytes(),
                     three = Ramped(c, method, 3).sum.compression_bytes();
        EXPECT_EQ(three, one) << method << " on " << ranks;
        // Residual, sum, and a quarter of the elements of each rank with their indices.
        if (method == "topk") {
          EXPECT_LE(three, 2 * kBytes + static_cast<size_t>(ranks) * kBytes / 2 + 4096);
        }
      });
}

TEST(BucketSum, WhatACheckpointHasKeptIsReleasedByADenseStep) {
  comm::run_ranks(2, [&](comm::Communicator& c) {
    Ramped before(c, "topk", 1), after(c, "topk", 1);
    before.step(0, 0, c.rank());
    std::ranges::copy(before.sum.state(), after.sum.state().begin());
    after.sum.note_restored();
    const std::vector<float> plain(before.gradient.size(), 1.0f);
    std::vector<float> released = plain, again = plain;
    before.sum.choose({}, 1);
    before.sum.release(released);
    after.sum.choose({}, 1);
    after.sum.release(again);
    EXPECT_EQ(released, again);
    EXPECT_NE(released, plain) << "topk leaves something";
    std::vector<float> next = plain;
    after.sum.release(next);
    EXPECT_EQ(next, plain) << "once";
  });
}

TEST(BucketSum, PhasesThatShareMemoryDoNotDisturbEachOther) {
  for (const std::string method : {"topk", "hitopk"})
    comm::run_ranks(3, [&](comm::Communicator& c) {
      Ramped shared(c, method, 3);
      std::vector<float> state;  // the state from which a sum with a single phase continues
      for (uint64_t step = 0; step < 6; ++step) {
        const size_t phase = step % 3;
        const std::vector<float> got = shared.step(step, phase, c.rank());
        Ramped alone(c, method, static_cast<int>(phase) + 1);
        if (!state.empty()) std::ranges::copy(state, alone.sum.state().begin());
        EXPECT_EQ(got, alone.step(step, phase, c.rank())) << method << ", step " << step;
        state.assign(alone.sum.state().begin(), alone.sum.state().end());
      }
    });
}

}  // namespace
}  // namespace tutti::exchange
