#include "tutti/base/folder_lock.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fstream>
#include <memory>
#include <thread>

#include "tutti/base/error.h"
#include "tutti/base/expect_text.h"
#include "tutti/base/scratch_directory.h"

namespace tutti {
namespace {

namespace fs = std::filesystem;

class FolderLockTest : public testing::Test {
 protected:
  static FolderLockTerms terms(double patience, bool inherited) {
    return {.file = "work.lock",
            .holder = "a job",
            .other_way = "choose another place",
            .patience = patience,
            .inherited = inherited};
  }
  std::string refusal(const FolderLockTerms& asked) const {
    return message_of<ConfigError>("", [&] { const FolderLock lock(root_, asked); });
  }
  /// Forks a child that takes the inherited lock, starts a process that keeps it until `release`
  /// exists, and dies.
  void leave_a_process(const fs::path& release) const {
    const fs::path ready = root_ / "ready";
    const pid_t holder = fork();
    if (holder == 0) {
      new FolderLock(root_, terms(0, true));  // the child never closes it
      if (fork() == 0) {
        std::ofstream(ready) << "";
        while (!fs::exists(release)) usleep(2000);
        _exit(0);
      }
      while (!fs::exists(ready)) usleep(2000);
      _exit(0);
    }
    ASSERT_EQ(waitpid(holder, nullptr, 0), holder);
  }
  const ScratchDirectory scratch_;
  const fs::path root_ = scratch_.path();
};

TEST_F(FolderLockTest, ALinkIsNotFollowed) {
  std::ofstream(root_ / "victim") << "mine";
  fs::create_symlink(root_ / "victim", root_ / "work.lock");
  EXPECT_THROW(FolderLock(root_, terms(0, false)), IoError);
  EXPECT_EQ(fs::file_size(root_ / "victim"), 4u);
}

// Another member of the group may have made the file; only root can test that, by giving a file
// away.
TEST_F(FolderLockTest, AFileThatIsThereIsTakenWhoeverHasMadeIt) {
  std::ofstream(root_ / "work.lock") << "process 1 on another-host\n";
  if (geteuid() == 0) {
    ASSERT_EQ(chown((root_ / "work.lock").c_str(), 65534, static_cast<gid_t>(-1)), 0);
  }
  const FolderLock first(root_, terms(0, false));
  EXPECT_TRUE(has_text(refusal(terms(0, false)), "process " + std::to_string(getpid())));
}

// A process that may read a file may lock it: a stranger would keep its owner out.
TEST_F(FolderLockTest, OnlyWhoMayWriteTheFileMayReadIt) {
  const auto mode = [&] {
    return static_cast<unsigned>(fs::status(root_ / "work.lock").permissions());
  };
  const mode_t before = umask(0022);
  { const FolderLock lock(root_, terms(0, false)); }
  EXPECT_EQ(mode(), 0600u);
  fs::permissions(root_ / "work.lock", fs::perms{0644});  // as earlier versions left it
  { const FolderLock lock(root_, terms(0, false)); }
  EXPECT_EQ(mode(), 0600u);
  fs::remove(root_ / "work.lock");
  umask(0002);  // a group that works together
  { const FolderLock lock(root_, terms(0, false)); }
  EXPECT_EQ(mode(), 0660u);
  umask(before);
}

TEST_F(FolderLockTest, AProcessThatHasEndedIsNotSaidToHoldIt) {
  const FolderLock first(root_, terms(0, false));
  const pid_t ended = fork();
  if (ended == 0) _exit(0);
  ASSERT_EQ(waitpid(ended, nullptr, 0), ended);
  std::string host(256, '\0');
  gethostname(host.data(), host.size() - 1);
  std::ofstream(root_ / "work.lock") << "process " << ended << " on " << host.c_str() << "\n";
  EXPECT_TRUE(has_text(refusal(terms(0, false)), "another process; the last one"));
}

TEST_F(FolderLockTest, ASecondHolderIsRefusedWithTheFirstOnesName) {
  const FolderLock first(root_, terms(0, false));
  const std::string message = refusal(terms(0, false));
  for (const std::string& part :
       {"a job is under way in '" + root_.string() + "'", "process " + std::to_string(getpid()),
        std::string("or choose another place")})
    EXPECT_TRUE(has_text(message, part));
}

TEST_F(FolderLockTest, AHolderThatLivesAndWhoseChildrenHoldItTooIsRefusedAtOnce) {
  const FolderLock first(root_, terms(0, true));
  EXPECT_TRUE(has_text(refusal(terms(3600, true)), "a job is under way"));
}

TEST_F(FolderLockTest, AnEndedHolderDoesNotBlock) {
  for (const bool inherited : {false, true}) {
    { const FolderLock ended(root_, terms(0, inherited)); }
    EXPECT_EQ(refusal(terms(0, inherited)), "");
  }
}

TEST_F(FolderLockTest, WhatAKilledHolderLeftIsAwaited) {
  const fs::path release = root_ / "release";
  leave_a_process(release);
  EXPECT_TRUE(has_text(refusal(terms(0, true)), "but not all that it had started"));
  std::jthread later([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
    std::ofstream(release) << "";
  });
  EXPECT_EQ(refusal(terms(3600, true)), "");
}

TEST_F(FolderLockTest, TheLockIsOfTheFolderThatIsThereNow) {
  // The holder renames its folder while another process waits for the old file.
  auto held = std::make_unique<FolderLock>(root_ / "a", terms(0, false));
  std::thread waiting([&] {
    const FolderLock lock(root_ / "a", terms(3600, false));
    EXPECT_THROW(FolderLock(root_ / "a", terms(0, false)), ConfigError);
  });
  std::this_thread::sleep_for(std::chrono::milliseconds(50));  // else it finds the new one at once
  fs::rename(root_ / "a", root_ / "a.1");
  held.reset();
  waiting.join();
  EXPECT_TRUE(fs::exists(root_ / "a/work.lock"));
}

TEST_F(FolderLockTest, AFolderThatCannotBeWrittenIsAnIoError) {
  std::ofstream(root_ / "file") << "";
  EXPECT_THROW(FolderLock(root_ / "file", terms(0, false)), IoError);
}

}  // namespace
}  // namespace tutti
