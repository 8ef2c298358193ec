#include "tutti/study/run_folder.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <thread>

#include "tutti/base/error.h"

namespace tutti::study {
namespace {

namespace fs = std::filesystem;

class RunFolderTest : public testing::Test {
 protected:
  RunFolderTest()
      : root_(fs::path(testing::TempDir()) / "tutti_run_folder" /
              testing::UnitTest::GetInstance()->current_test_info()->name()) {
    fs::remove_all(root_);
    fs::create_directories(root_);
  }
  fs::path root_;
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
  const StudyLock first(root_.string(), 0);
  try {
    const StudyLock second(root_.string(), 60);
    FAIL() << "both have it";
  } catch (const ConfigError& error) {
    EXPECT_NE(std::string(error.what()).find("another study, process " + std::to_string(getpid())),
              std::string::npos)
        << error.what();
  }
}

TEST_F(RunFolderTest, TheLockOfAnEndedStudyDoesNotBlock) {
  { const StudyLock ended(root_.string(), 0); }
  const StudyLock next(root_.string(), 0);
}

TEST_F(RunFolderTest, TheRunsOfAKilledStudyAreAwaited) {
  // The study is a child that starts a run (its own child, which inherits the lock) and dies.
  const fs::path ready = root_ / "ready", release = root_ / "release";
  const pid_t study = fork();
  if (study == 0) {
    new StudyLock(root_.string(), 0);  // never closed by it
    if (fork() == 0) {
      std::ofstream(ready) << "";
      while (!fs::exists(release)) usleep(2000);
      _exit(0);
    }
    while (!fs::exists(ready)) usleep(2000);
    _exit(0);
  }
  ASSERT_EQ(waitpid(study, nullptr, 0), study);
  EXPECT_THROW(StudyLock(root_.string(), 0), ConfigError);
  std::jthread later([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
    std::ofstream(release) << "";
  });
  const StudyLock next(root_.string(), 60);
}

}  // namespace
}  // namespace tutti::study
