#include "tutti/study/run_folder.h"

#include <gtest/gtest.h>

#include <filesystem>

#include "tutti/base/error.h"
#include "tutti/base/scratch_directory.h"

namespace tutti::study {
namespace {

namespace fs = std::filesystem;

class RunFolderTest : public testing::Test {
 protected:
  const ScratchDirectory scratch_;
  const fs::path root_ = scratch_.path();
};

TEST(RunFolder, DifferencesNameKeysAndBothValuesAndLeaveOutWhatChangesNoResult) {
  const auto found = differences({{"a", "1"}, {"b", "2"}, {"run.log_level", "\"info\""}},
                                 {{"a", "1"}, {"b", "3"}, {"c", "4"}});
  EXPECT_EQ(found, (std::vector<std::string>{"b: 2 there, 3 now", "c: absent there, 4 now"}));
}

TEST_F(RunFolderTest, AFolderThatCannotBeLookedAtIsAnIoError) {
  const std::string too_long = (root_ / std::string(300, 'x')).string();
  EXPECT_FALSE(is_finished(too_long)) << "with a warning";
  EXPECT_THROW(set_aside(too_long), IoError);
  EXPECT_FALSE(is_there((root_ / "nothing").string()));
  EXPECT_TRUE(is_there(root_.string()));
}

TEST_F(RunFolderTest, TwoStudiesInOneFolderAreRefused) {
  const FolderLock first = lock_study(root_.string(), 0);
  try {
    const FolderLock second = lock_study(root_.string(), 3600);
    FAIL() << "both have it";
  } catch (const ConfigError& error) {
    EXPECT_NE(std::string(error.what())
                  .find("a study is under way in '" + root_.string() + "': process "),
              std::string::npos)
        << error.what();
  }
}

}  // namespace
}  // namespace tutti::study
