#include "tutti/comm/schedule/tree.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>

#include "tutti/base/error.h"
#include "tutti/base/numeric/rng.h"

namespace tutti::comm {
namespace {

// The definition, written once more as plainly as possible.
float oracle(const std::vector<float>& v, int lo, int hi) {
  if (hi - lo == 1) return v[static_cast<size_t>(lo)];
  int half = 1;
  while (2 * half < hi - lo) half *= 2;
  return oracle(v, lo, lo + half) + oracle(v, lo + half, hi);
}

std::vector<float> tree_values(int n, uint64_t stream) {
  Rng rng(7, Purpose::test, stream);
  std::vector<float> v;
  // Mixed magnitudes, so that every other order of the sum has other bits.
  for (int i = 0; i < n; ++i)
    v.push_back(rng.normal() * std::ldexp(1.0f, static_cast<int>(rng.below(16)) - 8));
  return v;
}

// Runs the replicas of one rank through the slot plan for one element; returns the parts.
std::vector<float> accumulate(const SlotPlan& plan, const std::vector<float>& v, int lo) {
  std::vector<float> slots(static_cast<size_t>(plan.slots), -1e30f);
  for (size_t i = 0; i < plan.replicas.size(); ++i) {
    slots[static_cast<size_t>(plan.replicas[i].slot)] = v[static_cast<size_t>(lo) + i];
    for (const auto& add : plan.replicas[i].adds)
      slots[static_cast<size_t>(add.into)] += slots[static_cast<size_t>(add.from)];
  }
  slots.resize(plan.parts.size());
  return slots;
}

// Sums the rest of the tree, over parts that are nodes of it.
float sum_of_parts(const std::vector<float>& parts, const std::vector<Range>& nodes, Range node) {
  const auto at = std::ranges::find(nodes, node);
  if (at != nodes.end()) return parts[static_cast<size_t>(at - nodes.begin())];
  const int mid = split_point(node);
  return sum_of_parts(parts, nodes, {node.lo, mid}) + sum_of_parts(parts, nodes, {mid, node.hi});
}

TEST(Tree, SplitsAtTheLargestPowerOfTwoBelow) {
  EXPECT_EQ(split_point({0, 2}), 1);
  EXPECT_EQ(split_point({0, 3}), 2);
  EXPECT_EQ(split_point({0, 4}), 2);
  EXPECT_EQ(split_point({0, 5}), 4);
  EXPECT_EQ(split_point({4, 9}), 8);
}

TEST(Tree, MaximalSubtreesOfExamples) {
  EXPECT_EQ(maximal_subtrees(8, {0, 8}), (std::vector<Range>{{0, 8}}));
  EXPECT_EQ(maximal_subtrees(8, {0, 3}), (std::vector<Range>{{0, 2}, {2, 3}}));
  EXPECT_EQ(maximal_subtrees(8, {3, 6}), (std::vector<Range>{{3, 4}, {4, 6}}));
  EXPECT_EQ(maximal_subtrees(5, {2, 5}), (std::vector<Range>{{2, 4}, {4, 5}}));
}

TEST(Tree, DistributionIsBalancedWithLargerRunsFirst) {
  EXPECT_EQ(first_replicas(8, 3), (std::vector<int>{0, 3, 6, 8}));
  EXPECT_THROW(first_replicas(2, 3), InternalError);
}

TEST(Tree, EveryDistributionHasTheBitsOfOneRank) {
  for (int replicas = 1; replicas <= 9; ++replicas)
    for (int ranks = 1; ranks <= replicas; ++ranks) {
      const std::vector<int> first = first_replicas(replicas, ranks);
      const std::vector<Range> leaves = all_parts(replicas, first);
      for (uint64_t trial = 0; trial < 50; ++trial) {
        const std::vector<float> v = tree_values(replicas, trial);
        std::vector<float> parts;
        for (int p = 0; p < ranks; ++p) {
          const Range owned{first[static_cast<size_t>(p)], first[static_cast<size_t>(p) + 1]};
          const SlotPlan plan = plan_slots(replicas, owned);
          EXPECT_EQ(plan.parts, maximal_subtrees(replicas, owned));
          for (float x : accumulate(plan, v, owned.lo)) parts.push_back(x);
        }
        ASSERT_EQ(std::bit_cast<uint32_t>(sum_of_parts(parts, leaves, {0, replicas})),
                  std::bit_cast<uint32_t>(oracle(v, 0, replicas)))
            << replicas << " replicas on " << ranks << " ranks";
      }
    }
}

TEST(Tree, AnyContiguousRangeFoldsIntoItsMaximalSubtrees) {
  for (int replicas = 1; replicas <= 40; ++replicas)
    for (int lo = 0; lo < replicas; ++lo)
      for (int hi = lo + 1; hi <= replicas; ++hi) {
        const SlotPlan plan = plan_slots(replicas, {lo, hi});
        ASSERT_EQ(plan.parts, maximal_subtrees(replicas, {lo, hi}));
        ASSERT_LE(plan.slots, 2 * std::bit_width(static_cast<unsigned>(replicas)));
      }
}

TEST(Tree, LogarithmicSlots) {
  EXPECT_EQ(plan_slots(1, {0, 1}).slots, 1);
  EXPECT_EQ(plan_slots(2, {0, 2}).slots, 2);
  EXPECT_EQ(plan_slots(4, {0, 4}).slots, 3);
  EXPECT_EQ(plan_slots(1024, {0, 1024}).slots, 11);
}

}  // namespace
}  // namespace tutti::comm
