#include "tutti/plan/memory.h"

#include <gtest/gtest.h>

#include "tutti/base/numeric/rng.h"
#include "tutti/plan/planned_memory.h"

namespace tutti::plan {
namespace {

void expect_disjoint(const std::vector<Lifetime>& blocks, const ArenaPlan& plan) {
  for (size_t i = 0; i < blocks.size(); ++i) {
    EXPECT_EQ(plan.offsets[i] % 64, 0u);
    EXPECT_LE(plan.offsets[i] + blocks[i].bytes, plan.bytes);
    for (size_t j = 0; j < i; ++j) {
      const bool together = blocks[i].meets(blocks[j]);
      const bool apart = plan.offsets[i] + blocks[i].bytes <= plan.offsets[j] ||
                         plan.offsets[j] + blocks[j].bytes <= plan.offsets[i];
      EXPECT_TRUE(!together || apart) << i << " and " << j;
    }
  }
}

TEST(PlanArena, ReusesMemoryOfTheDead) {
  const std::vector<Lifetime> blocks = {{1024, {{0, 1}}}, {1024, {{1, 2}}}, {1024, {{2, 3}}}};
  const ArenaPlan plan = plan_arena(blocks);
  expect_disjoint(blocks, plan);
  EXPECT_EQ(plan.bytes, 2048u);
}

TEST(PlanArena, ABlockThatIsNotNeededForAWhileLendsItsMemory) {
  const std::vector<Lifetime> blocks = {
      {1024, {{0, 1}, {4, 5}}}, {1024, {{2, 3}}}, {1024, {{4, 4}}}};
  const ArenaPlan plan = plan_arena(blocks);
  expect_disjoint(blocks, plan);
  EXPECT_EQ(plan.bytes, 2048u);
  EXPECT_EQ(arena_peak(blocks).moment, 4);
  EXPECT_EQ(bytes_at(blocks, 3), 1024u);
}

TEST(PlanArena, RandomLifetimesStayNearTheBound) {
  for (uint64_t seed = 0; seed < 20; ++seed) {
    Rng rng(seed, Purpose::test, 0);
    std::vector<Lifetime> blocks;
    for (int i = 0; i < 60; ++i) {
      const int first = static_cast<int>(rng.below(50));
      const int last = first + static_cast<int>(rng.below(20));
      blocks.push_back({64 * (1 + rng.below(40)), {{first, last}}});
      if (rng.below(2) == 0)
        blocks.back().when.push_back({last + 5, last + 5 + static_cast<int>(rng.below(9))});
    }
    const ArenaPlan plan = plan_arena(blocks);
    expect_disjoint(blocks, plan);
    const ArenaPeak peak = arena_peak(blocks);
    EXPECT_EQ(bytes_at(blocks, peak.moment), peak.bytes);
    EXPECT_GE(plan.bytes, peak.bytes);
    EXPECT_LE(plan.bytes, peak.bytes * 3 / 2);
  }
}

TEST(PlannedMemory, CountsSumsOverRanksAndShownWeights) {
  Plan plan;
  plan.variables.parameter_bytes = 128;
  plan.variables.trained_bytes = 64;
  const PlannedMemory alone = planned_memory(plan);
  plan.options.memory.sums = 1;
  plan.options.memory.shown = 1;
  const PlannedMemory shared = planned_memory(plan);
  EXPECT_EQ(shared.gradients, alone.gradients + 64);
  EXPECT_EQ(shared.variables, alone.variables + 128);
}

}  // namespace
}  // namespace tutti::plan
