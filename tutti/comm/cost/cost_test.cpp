#include "tutti/comm/cost/cost.h"

#include <gtest/gtest.h>

#include <bit>

#include "tutti/base/error.h"
#include "tutti/comm/algorithm/algorithm.h"

namespace tutti::comm {
namespace {

constexpr double kLatency = 1e-5, kPerByte = 1e-9, kPerReduced = 5e-10;
constexpr NetworkCost kFlat{{kLatency, kPerByte}, {kLatency, kPerByte}, kPerReduced, 0};

double priced(const Algorithm& algorithm, Collective kind, int ranks, size_t count,
              const NetworkCost& network = kFlat, const std::vector<int>& node_of = {}) {
  std::vector<Schedule> schedules;
  Task task = balanced_task(kind, 0, ranks, count);
  task.node_of = node_of;
  for (task.rank = 0; task.rank < ranks; ++task.rank)
    schedules.push_back(make_schedule(algorithm, task));
  return price(schedules, network, node_of, 4, 4);
}

constexpr size_t kCount = 16 * 8 * 1000;
constexpr double kBytes = 4.0 * kCount;

// The formulas in seconds: rounds times latency, moved bytes over the link's rate, added bytes.
TEST(Cost, IsTheFormulaWhereRoundsAreEven) {
  for (const int n : {2, 4, 8}) {
    const double part = kBytes / n;
    const double ring_time =
        2 * (n - 1) * (kLatency + part * kPerByte) + (n - 1) * part * kPerReduced;
    EXPECT_NEAR(priced(ring, Collective::allreduce, n, kCount), ring_time, 1e-9) << n;
    const double rounds = std::countr_zero(static_cast<unsigned>(n));
    EXPECT_NEAR(priced(recursive_doubling, Collective::allreduce, n, kCount),
                rounds * (kLatency + kBytes * (kPerByte + kPerReduced)), 1e-9)
        << n;
    EXPECT_NEAR(
        priced(recursive_halving, Collective::allreduce, n, kCount),
        2 * rounds * kLatency + 2 * (kBytes - part) * kPerByte + (kBytes - part) * kPerReduced,
        1e-9)
        << n;
    EXPECT_NEAR(priced(pairwise, Collective::allgather, n, kCount),
                kLatency + (n - 1) * part * kPerByte, 1e-9)
        << n;
    EXPECT_NEAR(priced(binomial, Collective::broadcast, n, kCount),
                rounds * (kLatency + kBytes * kPerByte), 1e-9)
        << n;
  }
  EXPECT_EQ(priced(ring, Collective::allreduce, 1, kCount), 0);
}

TEST(Cost, OrdersAlgorithmsAsTheirFormulasDo) {
  EXPECT_LT(priced(recursive_doubling, Collective::allreduce, 16, 16),
            priced(ring, Collective::allreduce, 16, 16));
  EXPECT_LT(priced(ring, Collective::allreduce, 16, 1 << 24),
            priced(recursive_doubling, Collective::allreduce, 16, 1 << 24));
  EXPECT_LT(priced(ring_2d, Collective::allreduce, 36, 3600),
            priced(ring, Collective::allreduce, 36, 3600));
}

TEST(Cost, ASlowNetworkBetweenNodesIsWhereTwoLevelsPay) {
  const NetworkCost network{{1e-6, 1e-10}, {5e-5, 1e-9}, 0, 0};
  const std::vector<int> node_of{0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 2, 2, 3, 3, 3, 3};
  EXPECT_LT(priced(two_level, Collective::allreduce, 16, 1 << 20, network, node_of),
            0.5 * priced(recursive_doubling, Collective::allreduce, 16, 1 << 20, network, node_of));
}

// Inside a node everything is free here, so the price is the root's messages to other nodes.
TEST(Cost, OnlyRanksOfDifferentNodesTalkOverTheNetwork) {
  const NetworkCost network{{0, 0}, {kLatency, kPerByte}, 0, 0};
  const auto scatter = [&](const std::vector<int>& node_of) {
    return priced(pairwise, Collective::scatter, 4, kCount, network, node_of);
  };
  const double part = kBytes / 4 * kPerByte;
  EXPECT_EQ(scatter({0, 0, 0, 0}), 0);
  EXPECT_NEAR(scatter({0, 0, 0, 1}), kLatency + part, 1e-9);
  EXPECT_NEAR(scatter({0, 0, 1, 1}), kLatency + 2 * part, 1e-9);
  EXPECT_NEAR(scatter({0, 1, 0, 1}), kLatency + 2 * part, 1e-9);
  EXPECT_NEAR(scatter({0, 1, 2, 3}), kLatency + 3 * part, 1e-9);
}

TEST(Cost, SchedulesThatDoNotFit) {
  const Task task{.kind = Collective::allreduce, .ranks = 2, .count = 64};
  std::vector<Schedule> schedules{make_schedule(ring, task), Schedule{}};
  EXPECT_THROW(price(schedules, kFlat, {}, 4, 4), CommError);
}

}  // namespace
}  // namespace tutti::comm
