#include <gtest/gtest.h>

#include <fstream>

#include "tutti/base/scratch_directory.h"
#include "tutti/cli/config.h"
#include "tutti/cli/config_text.h"

namespace tutti {

TEST(ConfigIdleKeys, AKeyWithoutEffectIsAWarningThatNamesItsPlaceAndTheReason) {
  const ScratchDirectory scratch;
  const auto file = [&](const std::string& name, const std::string& text) {
    std::ofstream(scratch.path() / name) << text;
    return (scratch.path() / name).string();
  };
  const std::string path =
      file("run.toml", "[optimizer]\nname = \"adamw\"\nmomentum = 0.9\n[schedule]\ngamma = 0.5\n");
  const ResolvedConfig resolved = read_config({.file = path, .environment = {}, .flags = {}});
  ASSERT_EQ(resolved.warnings.size(), 2u);
  EXPECT_EQ(resolved.warnings[0],
            path +
                ":3:12: optimizer.momentum = 0.9 has no effect: it is only for optimizer.name = "
                "sgd or lars, and optimizer.name is adamw");
  EXPECT_EQ(resolved.warnings[1],
            path +
                ":5:9: schedule.gamma = 0.5 has no effect: it is only for schedule.name = steps "
                "without schedule.factors, or schedule.name = plateau, and schedule.name is "
                "constant");
  const ResolvedConfig labels =
      read_config({.file = "",
                   .environment = {},
                   .flags = {{"model.task", "regress", "--set model.task"},
                             {"loss.class_weights", "[1, 2]", "--set loss.class_weights"}}});
  ASSERT_EQ(labels.warnings.size(), 1u);
  EXPECT_NE(labels.warnings[0].find("and the network's task is regress"), std::string::npos);
  // What a run leaves warns of what was given, and of no default.
  const std::string kept = file("kept.toml", resolved_toml(resolved));
  EXPECT_EQ(read_config({.file = kept, .environment = {}, .flags = {}}).warnings.size(), 1u);
}

}  // namespace tutti
