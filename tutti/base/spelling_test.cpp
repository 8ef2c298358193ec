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

}  // namespace tutti
