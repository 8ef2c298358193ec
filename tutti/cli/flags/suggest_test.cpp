#include "tutti/cli/flags/suggest.h"

#include <gtest/gtest.h>

#include "tutti/base/error.h"
#include "tutti/base/expect_text.h"
#include "tutti/cli/command_line.h"
#include "tutti/config/config.h"

namespace tutti::cli {

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

TEST(NoGpu, IsSaidOfFlagsKeysAndVariablesAlike) {
  for (const char* name : {"--gpu", "--gpus", "--num-gpus", "--use_cuda", "--device", "run.device",
                           "model.gpus", "TUTTI_DEVICE", "--accelerator"})
    EXPECT_TRUE(has_text(no_gpu(name), "computes on the CPU and has no GPU part")) << name;
  EXPECT_EQ(no_gpu("--devise"), "");
  // None of our keys is taken for such a word.
  for (const config::ConfigKey& row : config::config_keys())
    EXPECT_EQ(no_gpu(row.name), "") << row.name;
  for (const std::vector<std::string>& words :
       {std::vector<std::string>{"train", "run.toml", "--gpus", "4"},
        {"eval", "run.toml", "--device=cuda"},
        {"bench", "ops", "--gpu"},
        {"config", "--set", "run.device=cpu"},
        {"config", "--run.device=cuda"}})
    EXPECT_TRUE(
        throws<ConfigError>({"no GPU part: leave it out"}, [&] { run_command_line(words); }));
}

}  // namespace tutti::cli
