#include "tutti/base/numeric/tree_sum.h"

#include <gtest/gtest.h>

#include <vector>

namespace tutti {
namespace {

TEST(TreeSum, AddsInTheWrittenOrder) {
  // 1 is lost beside 1e16 but 2 is not: each order of these sums has a value of its own.
  const std::vector<double> x{1e16, 1, 1, -1e16, 1};
  const auto sum = [&](int64_t lo, int64_t hi) {
    return tree_sum(lo, hi, [&](int64_t i) { return x[static_cast<size_t>(i)]; });
  };
  EXPECT_EQ(sum(0, 0), 0);
  EXPECT_EQ(sum(2, 3), 1);
  EXPECT_EQ(sum(0, 3), (x[0] + x[1]) + x[2]);
  EXPECT_EQ(sum(0, 5), ((x[0] + x[1]) + (x[2] + x[3])) + x[4]);
  EXPECT_EQ(sum(1, 5), (x[1] + x[2]) + (x[3] + x[4]))
      << "the tree depends on the number of leaves, not on where they are";
}

TEST(TreeSum, BlocksCoverAllElements) {
  EXPECT_EQ(sum_blocks(0), 0);
  EXPECT_EQ(sum_blocks(1), 1);
  EXPECT_EQ(sum_blocks(kSumBlock), 1);
  EXPECT_EQ(sum_blocks(kSumBlock + 1), 2);
}

}  // namespace
}  // namespace tutti
