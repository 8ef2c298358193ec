#include "tutti/cli/job/lifetime.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <limits>
#include <string>
#include <thread>
#include <vector>

#include "tutti/base/error.h"
#include "tutti/base/expect_text.h"
#include "tutti/base/numeric/denormals.h"
#include "tutti/base/scratch_directory.h"
#include "tutti/cli/job/supervised_job.h"
#include "tutti/cli/program.h"

namespace tutti::cli {
namespace {

TEST(WriteError, WaitsForAStreamThatIsNotToWait) {
  SlowReader reader(std::chrono::milliseconds(300), O_NONBLOCK);
  const std::string long_text = std::string(300000, 'x') + "end\n";
  write_error(long_text);
  const std::string text = reader.text();
  EXPECT_TRUE(text == long_text) << text.size() << " bytes";
}

/// Returns whether a thread that is started now takes denormals for zero.
bool flushes() {
  bool zero = false;
  std::thread([&] {
    const volatile float denormal = std::numeric_limits<float>::denorm_min(), large = 1e30f;
    zero = denormal * large == 0;
  }).join();
  return zero;
}

TEST(Program, ComputesWithoutDenormals) {
  EXPECT_FALSE(flushes());
  char name[] = "tutti", verb[] = "--version";
  char* arguments[] = {name, verb, nullptr};
  const auto run = [&] {
    std::freopen("/dev/null", "w", stdout);
    if (run_program(2, arguments) != 0) std::_Exit(2);
    const bool now = flushes();
    std::_Exit(now == flush_denormals() ? 0 : 1);  // if the processor can
  };
  EXPECT_EXIT(run(), testing::ExitedWithCode(0), "");
}

// The bytes come from an argument and from a folder's file, on both streams.
TEST(Program, ControlBytesOfNamesAreShown) {
  const ScratchDirectory scratch;
  const std::string folder = std::string(scratch.path()) + "/f\x1b[2J";
  std::filesystem::create_directory(folder);
  std::ofstream(folder + "/t\x1b]0;owned\x07.txt") << "some text\n";
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  const auto output_of = [&](std::vector<std::string> words) {
    const pid_t child = fork();
    if (child == 0) {
      dup2(ends[1], STDOUT_FILENO);
      dup2(ends[1], STDERR_FILENO);
      std::vector<char*> arguments;
      for (std::string& word : words) arguments.push_back(word.data());
      arguments.push_back(nullptr);
      _exit(run_program(static_cast<int>(words.size()), arguments.data()));
    }
    waitpid(child, nullptr, 0);
    fcntl(ends[0], F_SETFL, O_NONBLOCK);
    std::string text;
    char bytes[4096];
    for (ssize_t count; (count = read(ends[0], bytes, sizeof bytes)) > 0;)
      text.append(bytes, static_cast<size_t>(count));
    return text;
  };
  for (const auto& words : {std::vector<std::string>{"tutti", "data", "inspect", folder},
                            {"tutti", "config", folder + "/no.toml"},
                            {"tutti", "tra\x1b[2Jin"}}) {
    const std::string text = output_of(words);
    EXPECT_TRUE(has_text(text, "\\x1b[2J"));
    EXPECT_EQ(text.find('\x1b'), std::string::npos) << text;
  }
  close(ends[0]);
  close(ends[1]);
}

TEST(BeginProcessDeathTest, HearsSignalsThatWereBlockedOrIgnored) {
  const auto begin = [](const char* verb, int signal, bool ignores) {
    sigset_t all;
    sigfillset(&all);
    if (ignores) std::signal(signal, SIG_IGN);
    sigprocmask(SIG_BLOCK, &all, nullptr);
    if (!ignores) std::raise(signal);  // it came before main
    begin_process({verb, "run.toml"});
    std::raise(signal);
    _exit(0);
  };
  for (const bool ignores : {false, true})
    for (const int signal : {SIGTERM, SIGUSR1, SIGUSR2, SIGINT})
      EXPECT_EXIT(begin("train", signal, ignores), testing::ExitedWithCode(75), "stopped by");
  EXPECT_EXIT(begin("train", SIGHUP, false), testing::ExitedWithCode(75), "stopped by");
  EXPECT_EXIT(begin("eval", SIGUSR1, false), testing::KilledBySignal(SIGUSR1), "");
  EXPECT_EXIT(begin("eval", SIGTERM, true), testing::KilledBySignal(SIGTERM), "");
  // nohup and a shell's background job request this.
  EXPECT_EXIT(begin("train", SIGHUP, true), testing::ExitedWithCode(0), "");
  EXPECT_EXIT(begin("eval", SIGINT, true), testing::ExitedWithCode(0), "");
}

TEST(BeginProcess, MayOpenAsManyFilesAsTheHardLimitAllows) {
  rlimit before{};
  ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &before), 0);
  const rlim_t most = std::min<rlim_t>(before.rlim_max, 1 << 20);
  const auto run = [&] {
    rlimit files{64, before.rlim_max};
    setrlimit(RLIMIT_NOFILE, &files);
    begin_process({"eval"});
    getrlimit(RLIMIT_NOFILE, &files);
    std::_Exit(files.rlim_cur == most && files.rlim_max == before.rlim_max ? 0 : 1);
  };
  EXPECT_EXIT(run(), testing::ExitedWithCode(0), "");
  EXPECT_TRUE(
      has_text(file_error(EMFILE),
               fmt::format("may have {} open: raise the limit (ulimit -n)", before.rlim_cur)));
}

}  // namespace
}  // namespace tutti::cli
