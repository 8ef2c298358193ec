#include "tutti/comm/cost/cost_fit.h"

#include <gtest/gtest.h>

#include "tutti/comm/algorithm/algorithm.h"

namespace tutti::comm {
namespace {

std::vector<MeasuredSchedules> measure_on(const NetworkCost& network, int ranks,
                                          const std::vector<int>& node_of) {
  std::vector<MeasuredSchedules> measured;
  for (const Algorithm* algorithm : algorithms())
    for (const Collective kind : {Collective::allreduce, Collective::allgather,
                                  Collective::reduce_scatter, Collective::broadcast})
      for (const size_t count : {size_t{64}, size_t{4096}, size_t{1} << 20}) {
        Task task = balanced_task(kind, 0, ranks, count);
        task.node_of = node_of;
        if (!refusal_of(*algorithm, task).empty()) continue;
        MeasuredSchedules m;
        for (task.rank = 0; task.rank < ranks; ++task.rank)
          m.schedules.push_back(make_schedule(*algorithm, task));
        m.seconds = price(m.schedules, network, node_of, 4, 4);
        measured.push_back(std::move(m));
      }
  return measured;
}

TEST(CostFit, FindsTheNetworkOfOneNode) {
  const NetworkCost network{{2e-6, 2e-10}, {2e-6, 2e-10}, 5e-11, 3e-11};
  const NetworkCost found = fit_network(measure_on(network, 4, {}), {});
  EXPECT_NEAR(found.inside.latency, 2e-6, 2e-8);
  EXPECT_NEAR(found.inside.seconds_per_byte, 2e-10, 2e-12);
  EXPECT_NEAR(found.seconds_per_reduced_byte, 5e-11, 5e-12);
  EXPECT_EQ(found.between.latency, found.inside.latency);
}

TEST(CostFit, FindsBothLinks) {
  const std::vector<int> node_of{0, 0, 1, 1};
  const NetworkCost network{{1e-6, 1e-10}, {2e-5, 1e-9}, 5e-11, 3e-11};
  const NetworkCost found = fit_network(measure_on(network, 4, node_of), node_of);
  EXPECT_NEAR(found.inside.latency, 1e-6, 1e-7);
  EXPECT_NEAR(found.between.latency, 2e-5, 2e-7);
  EXPECT_NEAR(found.between.seconds_per_byte, 1e-9, 2e-11);
}

TEST(CostFit, NumbersAreNotNegative) {
  std::vector<MeasuredSchedules> measured = measure_on({{2e-6, 2e-10}, {2e-6, 2e-10}, 0, 0}, 4, {});
  // Larger messages took less time than their bytes: no rate explains that.
  for (MeasuredSchedules& m : measured) m.seconds = 1e-5;
  const NetworkCost found = fit_network(measured, {});
  EXPECT_GE(found.inside.latency, 0);
  EXPECT_GE(found.inside.seconds_per_byte, 0);
  EXPECT_GE(found.seconds_per_reduced_byte, 0);
  EXPECT_GE(found.seconds_per_copied_byte, 0);
}

}  // namespace
}  // namespace tutti::comm
