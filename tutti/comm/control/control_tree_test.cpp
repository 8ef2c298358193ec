#include "tutti/comm/control/control_tree.h"

#include <gtest/gtest.h>

#include <bit>
#include <string>

#include "tutti/base/numeric/tree_sum.h"

namespace tutti::comm {
namespace {

std::string folded(int rank, int ranks) {
  std::string text = std::to_string(rank);
  for (const int child : ControlTree(rank, ranks).children)
    text = "(" + text + "+" + folded(child, ranks) + ")";
  return text;
}

}  // namespace

// A control message costs a rank at most log2 P messages, with 1,000 ranks as with 16,384.
TEST(ControlTree, CostsARankAtMostLogPMessages) {
  for (const int ranks : {1, 2, 3, 7, 1000, 3000, 16384}) {
    const int bound = std::bit_width(static_cast<unsigned>(ranks - 1));
    for (const int root : {0, ranks / 3, ranks - 1})
      for (int rank = 0; rank < ranks; ++rank) {
        const ControlTree tree(rank, ranks, root);
        ASSERT_LE(static_cast<int>(tree.children.size()), bound) << rank << " of " << ranks;
        ASSERT_EQ(tree.parent < 0, rank == root);
      }
  }
}

TEST(ControlTree, EveryRankIsTheChildOfItsParentAndSubtreesAreRanges) {
  for (const int ranks : {2, 5, 6, 13, 64})
    for (const int root : {0, 1, ranks - 1})
      for (int rank = 0; rank < ranks; ++rank) {
        const ControlTree tree(rank, ranks, root);
        int next = (rank + 1) % ranks, covered = 1;
        for (size_t i = 0; i < tree.children.size(); ++i) {
          EXPECT_EQ(tree.children[i], next);
          EXPECT_EQ(ControlTree(tree.children[i], ranks, root).parent, rank);
          EXPECT_EQ(ControlTree(tree.children[i], ranks, root).size, tree.sizes[i]);
          covered += tree.sizes[i];
          next = (next + tree.sizes[i]) % ranks;
        }
        EXPECT_EQ(covered, tree.size);
        EXPECT_EQ(tree.size == ranks, rank == root);
      }
}

namespace {

// A sum that records how it was taken.
struct WrittenSum {
  std::string text = {};
  friend WrittenSum operator+(const WrittenSum& a, const WrittenSum& b) {
    return {"(" + a.text + "+" + b.text + ")"};
  }
};

}  // namespace

TEST(ControlTree, FoldsInTheOrderOfTheReductionTree) {
  for (int ranks = 1; ranks <= 33; ++ranks)
    EXPECT_EQ(folded(0, ranks), tree_sum(0, ranks, [](int64_t rank) {
                                  return WrittenSum{std::to_string(rank)};
                                }).text);
}

}  // namespace tutti::comm
