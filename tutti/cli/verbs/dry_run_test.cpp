#include "tutti/cli/verbs/dry_run.h"

#include <gtest/gtest.h>

#include "tutti/train/settings/resume_check.h"

namespace tutti::cli {
namespace {

TEST(DryRun, TakesTheDatasContentFromACheckpointThatHasIt) {
  keep::CheckpointInfo before;
  config::RunSettings settings = {{train::kDataContent, "here"}};
  take_data_content(before, settings);  // a checkpoint of an earlier version: check_resume()
                                        // reports it
  EXPECT_EQ(settings[train::kDataContent], "here");
  before.settings[train::kDataContent] = "there";
  take_data_content(before, settings);
  EXPECT_EQ(settings[train::kDataContent], "there");
}

}  // namespace
}  // namespace tutti::cli
