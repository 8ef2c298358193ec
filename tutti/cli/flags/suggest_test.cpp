#include "tutti/cli/flags/suggest.h"

#include <gtest/gtest.h>

#include "tutti/base/error.h"
#include "tutti/base/expect_text.h"
#include "tutti/cli/command_line.h"
#include "tutti/cli/config/config.h"
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

TEST(AboutGpus, IsSaidOfFlagsKeysAndVariablesAlike) {
  for (const char* name : {"--gpus", "--num-gpus", "--use_cuda", "run.gpu", "model.gpus",
                           "TUTTI_GPU", "--accelerator"})
    EXPECT_TRUE(has_text(about_gpus(name), "run.device = \"cuda\" (--gpu)")) << name;
  EXPECT_EQ(about_gpus("--devise"), "");
  for (const std::vector<std::string>& words :
       {std::vector<std::string>{"train", "run.toml", "--gpus", "4"},
        {"eval", "run.toml", "--num-gpus=1"},
        {"config", "--set", "run.gpu=true"},
        {"config", "--model.gpus=2"}})
    EXPECT_TRUE(throws<ConfigError>({"on one NVIDIA GPU"}, [&] { run_command_line(words); }));
}

TEST(AboutWord, LeadsToTheWordThatIsMeant) {
  const std::vector<std::string> devices = config::find_config_key("run.device")->choices,
                                 precisions = config::find_config_key("run.precision")->choices;
  for (const char* word : {"gpu", "GPU", "nvidia"})
    EXPECT_EQ(about_word(devices, word), ", did you mean 'cuda'?") << word;
  EXPECT_TRUE(has_text(about_word(devices, "cuda:1"), "CUDA_VISIBLE_DEVICES"));
  for (const auto& choices : {devices, precisions}) {
    EXPECT_EQ(about_word(choices, "zebra"), "");
    for (const std::string& choice : choices) EXPECT_EQ(about_word(choices, choice), "");
  }
  EXPECT_EQ(about_word({"a", "b"}, "gpu"), "");
}

/// A flag, a key and a variable say the same.
TEST(AboutWord, StandsInTheRefusal) {
  const std::string one = "must be one of cpu, cuda, emulated, is \"gpu\", did you mean 'cuda'?";
  for (const std::vector<std::string>& words :
       {std::vector<std::string>{"train", "run.toml", "--device", "gpu"},
        {"generate", "runs/mine", "--device=gpu"},
        {"config", "--set", "run.device=gpu"}})
    EXPECT_TRUE(throws<ConfigError>({one}, [&] { run_command_line(words); }));
  EXPECT_TRUE(throws<ConfigError>({one}, [] {
    (void)read_config({.environment = {{"TUTTI_DEVICE", "gpu"}}});
  }));
}

}  // namespace tutti::cli
