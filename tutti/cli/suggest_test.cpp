#include "tutti/cli/suggest.h"

#include <gtest/gtest.h>

namespace tutti {

TEST(EditDistance, KnownValues) {
  EXPECT_EQ(edit_distance("", ""), 0);
  EXPECT_EQ(edit_distance("abc", ""), 3);
  EXPECT_EQ(edit_distance("kitten", "sitting"), 3);
  EXPECT_EQ(edit_distance("rl", "lr"), 1);  // a swap is one edit
  EXPECT_EQ(edit_distance("ca", "abc"), 3);
}

TEST(Nearest, FindsWhatWasMeant) {
  const std::vector<std::string> words = {"optimizer.lr", "optimizer.momentum", "run.seed",
                                          "schedule.gamma"};
  EXPECT_EQ(nearest("optimiser.lr", words), "optimizer.lr");
  EXPECT_EQ(nearest("momentun", words), "optimizer.momentum");
  EXPECT_EQ(nearest("training.seed", words), "run.seed");
  EXPECT_EQ(nearest("zebra", words), "");
  EXPECT_EQ(did_you_mean("optimiser.lr", words), ", did you mean 'optimizer.lr'?");
}

}  // namespace tutti
