#include "tutti/cli/job/launcher_watch.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <functional>
#include <string>
#include <thread>

#include "tutti/base/expect_text.h"
#include "tutti/cli/job/supervised_job.h"

namespace tutti::cli {
namespace {

/// A child in place of mpirun, with a pipe as its error stream.
class Launcher {
 public:
  explicit Launcher(const std::function<void()>& work) {
    EXPECT_EQ(pipe(errors_), 0);
    process = fork();
    if (process == 0) {
      dup2(errors_[1], STDERR_FILENO);
      for (const int end : errors_) close(end);
      work();
      _exit(0);
    }
    close(errors_[1]);
    began = process_state(process)->began;
  }
  ~Launcher() {
    kill(process, SIGKILL);
    status_of(process);
    close(errors_[0]);
  }
  void stop_reading() {
    close(errors_[0]);
    errors_[0] = -1;
  }
  std::string printed() const {
    char text[1000];
    const ssize_t count = read(errors_[0], text, sizeof text);
    return {text, static_cast<size_t>(count > 0 ? count : 0)};
  }

  pid_t process = 0;
  uint64_t began = 0;

 private:
  int errors_[2] = {-1, -1};
};

TEST(LauncherWatch, KillsALauncherThatStaysAndSaysSo) {
  const Launcher launcher([] { pause(); });
  see_launcher_end({.launcher = launcher.process, .began = launcher.began, .looks = 3});
  EXPECT_FALSE(runs(launcher.process));
  EXPECT_TRUE(has_text(launcher.printed(), "still waits"));
}

TEST(LauncherWatch, KillsALauncherWhoseWordsNobodyReads) {
  Launcher launcher([] { pause(); });
  launcher.stop_reading();
  std::string name = "tutti-launcher-watch", process = std::to_string(launcher.process),
              began = std::to_string(launcher.began), rank = "0", looks = "3";
  char* words[] = {name.data(), process.data(), began.data(), rank.data(), looks.data()};
  const pid_t watch = fork();  // it closes files
  if (watch == 0) _exit(run_launcher_watch(5, words).value_or(1));
  EXPECT_EQ(status_of(watch), 0);
  EXPECT_FALSE(runs(launcher.process));
}

TEST(LauncherWatch, LeavesALauncherAloneThatEnds) {
  const Launcher launcher([] { usleep(200000); });
  see_launcher_end({.launcher = launcher.process, .began = launcher.began, .looks = 1'000'000});
  EXPECT_EQ(status_of(launcher.process), 0);
  EXPECT_EQ(launcher.printed(), "");
}

TEST(LauncherWatch, LeavesAnotherProcessOfThatNumberAlone) {
  const Launcher later([] { pause(); });
  see_launcher_end({.launcher = later.process, .began = later.began + 1, .looks = 1});
  EXPECT_TRUE(runs(later.process));
}

TEST(LauncherWatch, AStoppedLauncherIsNotTheOneThatWaits) {
  const Launcher launcher([] {
    raise(SIGSTOP);
    pause();
  });
  while (!process_state(launcher.process)->stopped()) usleep(1000);
  std::thread watch([&] {
    see_launcher_end({.launcher = launcher.process, .began = launcher.began, .looks = 3});
  });
  usleep(1'000'000);
  EXPECT_TRUE(runs(launcher.process));
  kill(launcher.process, SIGKILL);
  watch.join();
}

TEST(LauncherWatch, ALauncherMayWaitForARankThatIsThere) {
  const Launcher launcher([] {
    usleep(1'000'000);
    _exit(7);
  });
  see_launcher_end(
      {.launcher = launcher.process, .began = launcher.began, .rank = getppid(), .looks = 1});
  EXPECT_EQ(WEXITSTATUS(status_of(launcher.process)), 7);
}

TEST(LauncherWatch, IsCalledByItsOwnNameOnly) {
  char program[] = "tutti", train[] = "train", config[] = "run.toml", flag[] = "--ranks",
       two[] = "2";
  char* words[] = {program, train, config, flag, two};
  EXPECT_FALSE(run_launcher_watch(5, words));
}

}  // namespace
}  // namespace tutti::cli
