#include "tutti/cli/verbs/dry_run.h"

#include <gtest/gtest.h>

#include "tutti/train/settings/resume_check.h"

namespace tutti {
namespace {

TEST(DryRun, TakesTheDatasContentFromACheckpointThatHasIt) {
  CheckpointInfo before;
  RunSettings settings = {{kDataContent, "here"}};
  take_data_content(before, settings);  // a checkpoint of an earlier version: check_resume()
                                        // reports it
  EXPECT_EQ(settings[kDataContent], "here");
  before.settings[kDataContent] = "there";
  take_data_content(before, settings);
  EXPECT_EQ(settings[kDataContent], "there");
}

}  // namespace
}  // namespace tutti
