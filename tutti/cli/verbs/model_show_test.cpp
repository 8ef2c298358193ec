// Tests `tutti model show` for a network by its name and for a configuration, with keys and without
// data.

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "tutti/base/error.h"
#include "tutti/base/expect_text.h"
#include "tutti/base/json.h"
#include "tutti/base/scratch_directory.h"
#include "tutti/cli/command_line.h"
#include "tutti/cli/flags/json_output.h"
#include "tutti/data/format/array/npy_arrays.h"

namespace tutti::cli {
namespace {

using Words = std::vector<std::string>;

Json shown(Words words) {
  words.insert(words.begin(), {"model", "show"});
  words.emplace_back("--json");
  testing::internal::CaptureStdout();
  const auto printed = [] {
    give_back_output();
    return testing::internal::GetCapturedStdout();
  };
  try {
    EXPECT_EQ(run_command_line(words), 0);
  } catch (const Error&) {
    printed();
    throw;
  }
  return parse_json(printed());
}

class ModelShow : public testing::Test {
 protected:
  /// Returns a configuration of lenet on MNIST's files in the folder "digits".
  std::string configuration() const {
    std::ofstream(scratch_.path() / "run.toml")
        << "[model]\nname = \"lenet\"\n[data]\ndataset = \"mnist\"\ndir = \"digits\"\n";
    return scratch_.path() / "run.toml";
  }
  const ScratchDirectory scratch_;
};

TEST_F(ModelShow, TakesTheKeysOfANetworkAndRefusesOthers) {
  EXPECT_EQ(shown({"lenet"})["batch"], 128);
  EXPECT_EQ(shown({"lenet", "--set", "batch.local=7"})["batch"], 7);
  EXPECT_EQ(shown({"lenet", "--set", "batch.local=7", "--batch", "3"})["batch"], 3);
  const Json half = shown({"lenet", "--set", "run.precision=bf16", "--set", "model.classes=7"});
  EXPECT_EQ(half["precision"], "bf16");
  EXPECT_EQ(half["classes"], 7);
  for (const Words& flags : {Words{"--data-dir", "x"}, Words{"--set", "run.epochs=3"}})
    EXPECT_THROW(shown({"lenet", flags[0], flags[1]}), ConfigError) << flags[1];
}

TEST_F(ModelShow, NeedsNoDataAndSaysWhatIsWrongWithDataThatIsThere) {
  const Json without = shown({configuration(), "--set", "model.classes=7"});
  EXPECT_EQ(without["classes"], 7);
  EXPECT_EQ(without["input"], (std::vector<int64_t>{1, 28, 28}));
  std::filesystem::create_directory(scratch_.path() / "digits");
  EXPECT_EQ(shown({configuration()})["classes"], 10) << "an empty folder";
  std::ofstream(scratch_.path() / "digits/train-images-idx3-ubyte") << "damaged";
  EXPECT_THROW(shown({configuration()}), IoError);

  // The error is tutti plan's error, and no network for another input is shown.
  const std::vector<float> values(48);
  const data::ArrayRef array{
      .type = data::ElementType::f32, .shape = {16, 3}, .values = values.data()};
  std::filesystem::create_directory(scratch_.path() / "train");
  for (const char* name : {"train/x.npy", "train/y.npy"})
    data::write_npy_array(scratch_.path() / name, array);
  std::ofstream(scratch_.path() / "arrays.toml")
      << "[model]\nname = \"resnet20\"\n[data]\ndataset = \"arrays\"\ntrain_files = [\"train\"]\n"
         "fields = [\"x: from x axis 0\", \"y: from y axis 0\"]\ninput = \"x\"\ntarget = \"y\"\n";
  EXPECT_TRUE(throws<ConfigError>({"nothing says how many there are"},
                                  [&] { shown({scratch_.path() / "arrays.toml"}); }));
}

}  // namespace
}  // namespace tutti::cli
