#include <gtest/gtest.h>

#include <fstream>

#include "tutti/base/expect_text.h"
#include "tutti/base/scratch_directory.h"
#include "tutti/cli/config/config.h"
#include "tutti/cli/config/config_text.h"

namespace tutti::cli {

TEST(ConfigIdleKeys, AKeyWithoutEffectIsAWarningThatNamesItsPlaceAndTheReason) {
  const ScratchDirectory scratch;
  const auto file = [&](const std::string& name, const std::string& text) {
    std::ofstream(scratch.path() / name) << text;
    return (scratch.path() / name).string();
  };
  const std::string path =
      file("run.toml", "[optimizer]\nname = \"adamw\"\nmomentum = 0.8\n[schedule]\ngamma = 0.5\n");
  const ResolvedConfig resolved = read_config({.file = path});
  EXPECT_TRUE(resolved.warnings.empty()) << "of those that concern every verb";
  ASSERT_EQ(resolved.idle.size(), 2u);
  EXPECT_EQ(resolved.idle[0],
            path +
                ":3:12: optimizer.momentum = 0.8 has no effect: it is only for optimizer.name = "
                "sgd or lars, and optimizer.name is adamw");
  EXPECT_EQ(resolved.idle[1],
            path +
                ":5:9: schedule.gamma = 0.5 has no effect: it is only for schedule.name = steps "
                "without schedule.factors, or schedule.name = plateau, and schedule.name is "
                "constant");
  const ResolvedConfig labels =
      read_config({.flags = {{"model.task", "regress", "--set model.task"},
                             {"loss.class_weights", "[1, 2]", "--set loss.class_weights"}}});
  ASSERT_EQ(labels.idle.size(), 1u);
  EXPECT_TRUE(has_text(labels.idle[0], "and the network's task is regress"));
  // The configuration that a run leaves gives the same warnings.
  const std::string kept = file("kept.toml", resolved_toml(resolved));
  EXPECT_EQ(read_config({.file = kept}).idle.size(), 2u);
  // Defaults give no warning, also where a flag takes away their effect.
  const auto later = [&](const char* key, const char* value) {
    return read_config({.file = file("plain.toml", resolved_toml(read_config({}))),
                        .flags = {{key, value, "--set"}}})
        .idle;
  };
  EXPECT_EQ(later("plan.choices_from", "runs/mine"), std::vector<std::string>{});
  EXPECT_EQ(later("schedule.gamma", "0.5").size(), 1u);
}

}  // namespace tutti::cli
