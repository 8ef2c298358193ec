#include "tutti/exchange/exchange.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>

#include "tutti/base/error.h"
#include "tutti/base/numeric/rng.h"
#include "tutti/comm/transport/inproc/thread_ranks.h"
#include "tutti/exchange/average.h"

namespace tutti::exchange {
namespace {

const std::vector<GradientEntry> kEntries{
    {"fc", 400}, {"conv3", 12000}, {"bn3", 64}, {"conv2", 5000}, {"conv1", 432}};

float gradient_at(int step, int replica, size_t i) {
  Rng rng(static_cast<uint64_t>(step), Purpose::test, static_cast<uint64_t>(replica) << 32 | i);
  return rng.normal() * std::ldexp(1.0f, static_cast<int>(rng.below(12)));
}

// Runs steps of "training" on one rank; returns the summed gradient of each step.
std::vector<std::vector<float>> train(comm::Communicator& c, int replicas, int steps,
                                      ExchangeCounters* counters = nullptr) {
  GradientExchange exchange(c, ReplicaMap(replicas, c.size(), c.rank()),
                            partition_buckets(kEntries, 4096));
  EXPECT_GT(exchange.buckets(), 2);
  std::vector<std::vector<float>> sums;
  for (int step = 0; step < steps; ++step) {
    for (int local = 0; local < exchange.map().local_count(); ++local)
      for (int b = 0; b < exchange.buckets(); ++b) {
        for (const int member : exchange.layout().buckets[size_t(b)].members) {
          const size_t at = exchange.layout().offsets[size_t(member)] / 4;
          for (size_t i = at; i < at + kEntries[size_t(member)].bytes / 4; ++i)
            exchange.slot(local)[i] = gradient_at(step, exchange.map().replica(local), i);
        }
        exchange.ready(local, b);
        exchange.poll();
      }
    std::vector<float> sum;
    for (int b = 0; b < exchange.buckets(); ++b) {
      exchange.wait(b);
      sum.insert(sum.end(), exchange.result(b),
                 exchange.result(b) + exchange.layout().buckets[size_t(b)].floats());
    }
    sums.push_back(std::move(sum));
  }
  if (counters != nullptr) *counters = exchange.counters();
  return sums;
}

TEST(GradientExchange, HasTheSameBitsOnAnyNumberOfRanks) {
  for (const int replicas : {1, 2, 3, 4, 5, 8}) {
    const auto single = comm::make_single_communicator();
    const auto want = train(*single, replicas, 3);
    for (int ranks = 2; ranks <= std::min(replicas, 4); ++ranks)
      comm::run_ranks(ranks, [&](comm::Communicator& c) {
        const auto got = train(c, replicas, 3);
        for (size_t step = 0; step < want.size(); ++step)
          ASSERT_EQ(std::memcmp(got[step].data(), want[step].data(), want[step].size() * 4), 0)
              << replicas << " replicas on " << ranks << " ranks, step " << step;
      });
  }
}

TEST(GradientExchange, ThreeReplicasAreSummedAsTheTreeSays) {
  const auto single = comm::make_single_communicator();
  const auto sums = train(*single, 3, 1);
  EXPECT_EQ(sums[0][0], (gradient_at(0, 0, 0) + gradient_at(0, 1, 0)) + gradient_at(0, 2, 0));
}

TEST(GradientExchange, OneReplicaCopiesNothing) {
  const auto single = comm::make_single_communicator();
  GradientExchange exchange(*single, ReplicaMap(1, 1, 0), partition_buckets(kEntries, 4096));
  for (int b = 0; b < exchange.buckets(); ++b)
    EXPECT_EQ(exchange.result(b),
              exchange.slot(0) + exchange.layout().buckets[size_t(b)].begin / 4);
}

TEST(GradientExchange, CountsBytesAndReductions) {
  comm::run_ranks(2, [](comm::Communicator& c) {
    ExchangeCounters counters;
    train(c, 2, 3, &counters);
    const BucketLayout layout = partition_buckets(kEntries, 4096);
    EXPECT_EQ(counters.reductions, 3 * layout.buckets.size());
    // Each rank reads the other's half.
    const std::vector<uint64_t> bytes = c.allgather_value(counters.bytes_moved);
    EXPECT_EQ(bytes[0] + bytes[1], 3 * layout.bytes);
    EXPECT_EQ(counters.folding_seconds, 0.0);
  });
}

TEST(GradientExchange, MisuseIsCaught) {
  const auto single = comm::make_single_communicator();
  GradientExchange exchange(*single, ReplicaMap(2, 1, 0), partition_buckets(kEntries, 4096));
  EXPECT_THROW(exchange.ready(1, 0), InternalError) << "replica 0 comes first";
  EXPECT_THROW(exchange.wait(0), InternalError) << "nothing is ready";
  exchange.ready(0, 0);
  EXPECT_THROW(exchange.wait(0), InternalError) << "replica 1 is missing";
  exchange.ready(1, 0);
  exchange.wait(0);
  EXPECT_THROW(exchange.slot(2), InternalError);
}

TEST(ReplicaAverage, IsTheSameOnAnyNumberOfRanks) {
  constexpr size_t kCount = 100;
  const auto run = [](comm::Communicator& c) {
    const ReplicaMap map(5, c.size(), c.rank());
    ReplicaAverage average(c, map, kCount);
    std::vector<float> both;
    for (int round = 0; round < 2; ++round) {
      const auto values = average.average([&](int local, std::span<float> place) {
        for (size_t i = 0; i < kCount; ++i) place[i] = gradient_at(round, map.replica(local), i);
      });
      both.insert(both.end(), values.begin(), values.end());
    }
    return both;
  };
  const auto single = comm::make_single_communicator();
  const std::vector<float> want = run(*single);
  const auto g = [](int replica) { return gradient_at(0, replica, 0); };
  EXPECT_EQ(want[0], (((g(0) + g(1)) + (g(2) + g(3))) + g(4)) / 5);
  for (int ranks = 2; ranks <= 4; ++ranks)
    comm::run_ranks(ranks, [&](comm::Communicator& c) { EXPECT_EQ(run(c), want) << ranks; });
}

TEST(SumOverReplicas, CountsAndLossesAreTheSameOnAnyNumberOfRanks) {
  constexpr int kReplicas = 7;
  const auto run = [](comm::Communicator& c) {
    const ReplicaMap map(kReplicas, c.size(), c.rank());
    std::vector<double> local;
    for (int l = 0; l < map.local_count(); ++l) {
      local.push_back(map.replica(l) + 1);
      local.push_back(1e17 * gradient_at(0, map.replica(l), 3));
      local.push_back(1.0 / (3 + map.replica(l)));
    }
    return sum_over_replicas(c, map, local, 3);
  };
  const auto single = comm::make_single_communicator();
  const std::vector<double> want = run(*single);
  EXPECT_EQ(want[0], 28.0);
  for (int ranks = 2; ranks <= 4; ++ranks)
    comm::run_ranks(ranks, [&](comm::Communicator& c) { EXPECT_EQ(run(c), want) << ranks; });
}

}  // namespace
}  // namespace tutti::exchange
