#include "tutti/cli/suggest.h"

#include <gtest/gtest.h>

namespace tutti {

TEST(Nearest, FindsWhatWasMeant) {
  const std::vector<std::string> words = {"optimizer.lr", "optimizer.momentum", "run.seed",
                                          "schedule.gamma"};
  EXPECT_EQ(nearest("optimiser.lr", words), "optimizer.lr");
  EXPECT_EQ(nearest("momentun", words), "optimizer.momentum");
  EXPECT_EQ(nearest("training.seed", words), "run.seed");
  EXPECT_EQ(nearest("zebra", words), "");
  EXPECT_EQ(did_you_mean("optimiser.lr", words), ", did you mean 'optimizer.lr'?");
}

TEST(Nearest, KnowsTheWordsOfOtherFrameworks) {
  const std::vector<std::string> keys = {"optimizer.lr", "optimizer.momentum", "data.readers",
                                         "schedule.milestones"},
                                 flags = {"--lr", "--ranks", "--batch-size", "--help"};
  EXPECT_EQ(nearest("optimizer.learning_rate", keys), "optimizer.lr");
  EXPECT_EQ(nearest("learning-rate", keys), "optimizer.lr");
  EXPECT_EQ(nearest("num_workers", keys), "data.readers");
  EXPECT_EQ(nearest("--learning-rate", flags), "--lr");
  EXPECT_EQ(nearest("--nproc_per_node", flags), "--ranks");
  EXPECT_EQ(nearest("--num-workers", flags), "");
}

}  // namespace tutti
