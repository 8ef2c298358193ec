#include "tutti/base/spelling.h"

#include <gtest/gtest.h>

namespace tutti {

TEST(EditDistance, KnownValues) {
  EXPECT_EQ(edit_distance("", ""), 0);
  EXPECT_EQ(edit_distance("abc", ""), 3);
  EXPECT_EQ(edit_distance("kitten", "sitting"), 3);
  EXPECT_EQ(edit_distance("rl", "lr"), 1);  // a swap is one edit
  EXPECT_EQ(edit_distance("ca", "abc"), 3);
}

TEST(Spelling, TheNearestWordIsSuggestedAndAFarOneIsNot) {
  const std::vector<std::string> words = {"lenet", "cosmoflow", "cosmoflow-small"};
  EXPECT_EQ(did_you_mean(nearest_spelling("cosmoflo", words)), ", did you mean 'cosmoflow'?");
  EXPECT_EQ(did_you_mean(nearest_spelling("zebra", words)), "");
}

TEST(Spelling, AmongManyChoicesTheNearestIsNamed) {
  EXPECT_EQ(must_be_one_of({"fp32", "bf16"}, "fp64"), "must be one of fp32, bf16, is \"fp64\"");
  EXPECT_EQ(must_be_one_of({"a1", "b2", "c3", "d4", "e5", "f6", "g7", "h8", "lattices"}, "latices"),
            "must be one of a1, b2, c3, d4, e5, f6, g7, h8, lattices, is \"latices\", did you mean "
            "'lattices'?");
}

}  // namespace tutti
