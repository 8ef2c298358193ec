#include "tutti/study/run_folder.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>

#include "tutti/base/error.h"
#include "tutti/base/expect_text.h"
#include "tutti/base/scratch_directory.h"

namespace tutti::study {
namespace {

namespace fs = std::filesystem;

class RunFolderTest : public testing::Test {
 protected:
  const ScratchDirectory scratch_;
  const fs::path root_ = scratch_.path();
};

TEST(RunFolder, DifferencesNameKeysAndBothValuesAndLeaveOutWhatDoesNotMatter) {
  const auto rule = [](const std::string& key) {
    return key == "quiet" ? OnChange::no_matter
           : key == "b"   ? OnChange::may_go_on
                          : OnChange::begins_anew;
  };
  const auto found = differences({{"a", "1"}, {"b", "2"}, {"quiet", "true"}},
                                 {{"a", "1"}, {"b", "3"}, {"c", "4"}}, rule);
  ASSERT_EQ(found.size(), 2u);
  EXPECT_EQ(found[0].text(), "b: 2 there, 3 now");
  EXPECT_EQ(found[0].rule, OnChange::may_go_on);
  EXPECT_EQ(found[1].text(), "c: absent there, 4 now");
  EXPECT_EQ(found[1].rule, OnChange::begins_anew);
}

TEST_F(RunFolderTest, AFolderThatCannotBeLookedAtIsAnIoError) {
  const std::string too_long = (root_ / std::string(300, 'x')).string();
  EXPECT_FALSE(is_finished(too_long)) << "with a warning";
  EXPECT_THROW(set_aside(too_long), IoError);
}

TEST_F(RunFolderTest, OnlyFoldersOfRunsAreRuns) {
  for (const char* const name :
       {"n0004-r1", "n12345-r12", "n004-r1", "n0004-r", "n0004-r1.attempt-1", "n0004-s2x2-r1",
        "n0004-s-r1", "n0004r1", "other"})
    fs::create_directories(root_ / "runs" / name);
  std::vector<std::string> runs;
  for (const RunFolder& run : study_runs(root_.string())) runs.push_back(run.path);
  std::ranges::sort(runs);
  EXPECT_EQ(runs, (std::vector<std::string>{(root_ / "runs/n0004-r1").string(),
                                            (root_ / "runs/n0004-s2x2-r1").string(),
                                            (root_ / "runs/n12345-r12").string()}));
}

TEST_F(RunFolderTest, TwoStudiesInOneFolderAreRefused) {
  const FolderLock first = lock_study(root_.string(), 0);
  EXPECT_TRUE(
      throws<ConfigError>({"a study is under way in '" + root_.string() + "': process "},
                          [&] { const FolderLock second = lock_study(root_.string(), 3600); }));
}

}  // namespace
}  // namespace tutti::study
