#include "tutti/plan/memory.h"

#include <gtest/gtest.h>

#include "tutti/base/rng.h"

namespace tutti {
namespace {

void expect_disjoint(const std::vector<Lifetime>& blocks, const ArenaPlan& plan) {
  for (size_t i = 0; i < blocks.size(); ++i) {
    EXPECT_EQ(plan.offsets[i] % 64, 0u);
    EXPECT_LE(plan.offsets[i] + blocks[i].bytes, plan.bytes);
    for (size_t j = 0; j < i; ++j) {
      const bool together = blocks[i].first <= blocks[j].last && blocks[j].first <= blocks[i].last;
      const bool apart = plan.offsets[i] + blocks[i].bytes <= plan.offsets[j] ||
                         plan.offsets[j] + blocks[j].bytes <= plan.offsets[i];
      EXPECT_TRUE(!together || apart) << i << " and " << j;
    }
  }
}

TEST(PlanArena, ReusesMemoryOfTheDead) {
  const std::vector<Lifetime> blocks = {{1024, 0, 1}, {1024, 1, 2}, {1024, 2, 3}};
  const ArenaPlan plan = plan_arena(blocks);
  expect_disjoint(blocks, plan);
  EXPECT_EQ(plan.bytes, 2048u);
}

TEST(PlanArena, RandomLifetimesStayNearTheBound) {
  for (uint64_t seed = 0; seed < 20; ++seed) {
    Rng rng(seed, Purpose::test, 0);
    std::vector<Lifetime> blocks;
    for (int i = 0; i < 60; ++i) {
      const int first = static_cast<int>(rng.below(50));
      blocks.push_back({64 * (1 + rng.below(40)), first, first + static_cast<int>(rng.below(20))});
    }
    const ArenaPlan plan = plan_arena(blocks);
    expect_disjoint(blocks, plan);
    EXPECT_GE(plan.bytes, arena_lower_bound(blocks));
    EXPECT_LE(plan.bytes, arena_lower_bound(blocks) * 3 / 2);
  }
}

}  // namespace
}  // namespace tutti
