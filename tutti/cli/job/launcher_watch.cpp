#include "tutti/cli/job/launcher_watch.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

#include "tutti/base/process_state.h"

namespace tutti::cli {
namespace {

// An mpirun whose hosts all answer ends within a second or two of its ranks. The second rank of its
// host waits longer, in case the first one was lost.
constexpr int kWatchLooks = 150, kMoreLooks = 50;
constexpr int kWatchLookMs = 100;
constexpr char kWatch[] = "tutti-launcher-watch";  // the watch's name on its command line

// Launchers that run in the foreground for one job alone. Their daemons on other hosts end with
// them, while a daemon that was there before the job may serve others.
constexpr std::array<std::string_view, 4> kForegroundLaunchers = {"mpirun", "mpiexec", "orterun",
                                                                  "prterun"};

pid_t launcher_process = 0;
std::atomic<bool> to_watch{false};
// The watch's arguments, prepared because a handler cannot format.
std::array<char, 32> launcher_word{}, began_word{}, rank_word{}, looks_word{};

std::string command_name(pid_t process) {
  std::string name;
  std::getline(std::ifstream(fmt::format("/proc/{}/comm", process)), name);
  return name;
}

// The numbers of pidfd_open and pidfd_getfd, which are the same on all architectures: headers of
// older systems lack the names, and their kernels refuse the numbers.
constexpr long kOpenProcess = 434, kTakeFile = 438;

/// Returns one of the launcher's own streams, -1 if that is impossible. It is the very same stream,
/// so that text written to a file comes after earlier text. Kernels that refuse this to a process
/// that is no debugger allow opening all but files a second time.
int stream_of(pid_t launcher, int stream) {
  const int process = static_cast<int>(syscall(kOpenProcess, launcher, 0));
  if (process >= 0) {
    const int taken = static_cast<int>(syscall(kTakeFile, process, stream, 0));
    close(process);
    if (taken >= 0) return taken;
  }
  const std::string path = fmt::format("/proc/{}/fd/{}", launcher, stream);
  std::error_code error;
  if (std::filesystem::is_regular_file(path, error)) return -1;
  return open(path.c_str(), O_WRONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
}

bool takes_bytes(pid_t launcher, int stream) {
  pollfd file{stream_of(launcher, stream), POLLOUT, 0};
  if (file.fd < 0) return true;
  const bool full = poll(&file, 1, 0) == 0;
  close(file.fd);
  return !full;
}

void close_other_files() {
  std::vector<int> files;
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd"))
    files.push_back(std::atoi(entry.path().filename().c_str()));
  for (const int file : files)
    if (file > STDERR_FILENO) close(file);  // the folder's own descriptor is closed already
}

void tell_end(const LauncherWatch& watch) {
  const int stream = stream_of(watch.launcher, STDERR_FILENO);
  if (stream < 0) return;
  const std::string line = fmt::format(
      "tutti: {} (process {}) still waits {:g} s after the job's end, so it is killed: a host of "
      "the job does not answer\n",
      command_name(watch.launcher), watch.launcher, watch.looks * kWatchLookMs / 1000.0);
  [[maybe_unused]] const ssize_t nobody_reads_it = write(stream, line.data(), line.size());
  close(stream);
}

}  // namespace

void remember_launcher(int local_rank) {
  launcher_process = getppid();
  const auto state = process_state(launcher_process);
  if (!state || local_rank > 1 ||
      std::ranges::find(kForegroundLaunchers, command_name(launcher_process)) ==
          kForegroundLaunchers.end())
    return;
  const auto print = [](std::array<char, 32>& word, uint64_t number) {
    std::snprintf(word.data(), word.size(), "%llu", static_cast<unsigned long long>(number));
  };
  print(launcher_word, static_cast<uint64_t>(launcher_process));
  print(began_word, state->began);
  print(rank_word, static_cast<uint64_t>(getpid()));
  print(looks_word, local_rank == 1 ? kWatchLooks + kMoreLooks : kWatchLooks);
  to_watch = true;
}

bool is_launcher(pid_t process) noexcept {
  return launcher_process > 1 && process == launcher_process;
}

// Not fork(): its hooks take locks that this thread may hold already. Between the two system calls
// only functions that a handler may call are used. The watch has a session of its own, because
// mpirun kills whole process groups; and none of the rank's streams, because mpirun waits until all
// have closed them.
void leave_launcher_watch() noexcept {
  if (!to_watch.exchange(false)) return;
  if (syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0) != 0) return;
  setsid();
  const int null = open("/dev/null", O_RDWR);
  for (int stream = STDIN_FILENO; stream <= STDERR_FILENO; ++stream) dup2(null, stream);
  char name[sizeof kWatch];
  std::copy_n(kWatch, sizeof kWatch, name);
  char* const words[] = {
      name, launcher_word.data(), began_word.data(), rank_word.data(), looks_word.data(), nullptr};
  execve("/proc/self/exe", words, environ);
  _exit(127);
}

std::optional<int> run_launcher_watch(int count, char** words) {
  if (count != 5 || std::string_view(words[0]) != kWatch) return std::nullopt;
  prctl(PR_SET_NAME, "tutti-watch");
  close_other_files();
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, nullptr);  // it may have been called in a handler
  signal(SIGPIPE,
         SIG_IGN);  // the reader of the launcher's output may be gone: the launcher ends all the
                    // same
  see_launcher_end({.launcher = std::atoi(words[1]),
                    .began = std::strtoull(words[2], nullptr, 10),
                    .rank = std::atoi(words[3]),
                    .looks = std::atoi(words[4])});
  return 0;
}

void see_launcher_end(const LauncherWatch& watch) {
  int looks = 0;
  for (bool killed = false;; poll(nullptr, 0, kWatchLookMs)) {
    const auto state = process_state(watch.launcher);
    if (!state || !state->runs() || state->began != watch.began) return;
    if (killed || state->stopped() || getppid() == watch.rank) continue;
    if (!takes_bytes(watch.launcher, STDOUT_FILENO) || !takes_bytes(watch.launcher, STDERR_FILENO))
      continue;
    if (++looks < watch.looks) continue;
    tell_end(watch);
    kill(watch.launcher, SIGKILL);
    killed = true;
  }
}

}  // namespace tutti::cli
