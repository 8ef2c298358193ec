#include "tutti/study/child.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "tutti/base/error.h"
#include "tutti/base/visible.h"

namespace tutti::study {
namespace {

volatile sig_atomic_t stop_count = 0, interrupt_count = 0;

/// Runs in the forked child: only async-signal-safe calls until the program is replaced. Sends the
/// reason of a failure through `report`, which closes by itself when the program starts.
[[noreturn]] void become(char* const* argv, int output, int report, pid_t parent) {
  prctl(PR_SET_PDEATHSIG, SIGTERM);
  if (getppid() != parent) _exit(1);  // the study died before prctl
  setpgid(0, 0);
  const int null = open("/dev/null", O_RDONLY | O_CLOEXEC);
  dup2(null, STDIN_FILENO);
  dup2(output, STDOUT_FILENO);
  dup2(output, STDERR_FILENO);
  execvp(argv[0], argv);
  const int reason = errno;
  if (write(report, &reason, sizeof reason) < 0) _exit(126);
  _exit(127);
}

}  // namespace

Child::Child(const std::vector<std::string>& command) {
  int out[2], report[2];
  if (pipe2(out, O_CLOEXEC) != 0 || pipe2(report, O_CLOEXEC) != 0)
    throw IoError(fmt::format("cannot make a pipe for a run: {}", file_error(errno)));
  std::vector<char*> argv;
  for (const std::string& word : command) argv.push_back(const_cast<char*>(word.c_str()));
  argv.push_back(nullptr);
  const pid_t parent = getpid();
  pid_ = fork();
  if (pid_ == 0) become(argv.data(), out[1], report[1], parent);
  const int fork_error = errno;
  close(out[1]);
  close(report[1]);
  output_ = out[0];
  int reason = pid_ < 0 ? fork_error : 0;
  if (pid_ > 0) {
    while (read(report[0], &reason, sizeof reason) < 0 && errno == EINTR) {}
    if (reason) waitpid(pid_, nullptr, 0);
  }
  close(report[0]);
  if (reason) {
    close(output_);
    throw IoError(fmt::format("cannot start {}: {}", command[0], std::strerror(reason)));
  }
}

Child::~Child() {
  if (!waited_) {
    kill_group();
    waitpid(pid_, nullptr, 0);
  }
  close(output_);
}

bool Child::ended(int& status) {
  if (!waited_) {
    const pid_t found = waitpid(pid_, &status_, WNOHANG);
    if (found < 0) status_ = kLostStatus;  // it is no longer a child of this process
    waited_ = found != 0;
  }
  status = status_;
  return waited_;
}

std::string describe_status(int status) {
  if (status == kLostStatus) return "exit code unknown";
  if (WIFSIGNALED(status))
    return fmt::format("killed by signal {} ({})", WTERMSIG(status), strsignal(WTERMSIG(status)));
  return fmt::format("exit code {}", WEXITSTATUS(status));
}

StopSignals::StopSignals() {
  stop_count = 0;
  interrupt_count = 0;
  struct sigaction action {};
  action.sa_handler = [](int signal) {
    hurry_output();
    stop_count = stop_count + 1;
    if (signal == SIGINT) interrupt_count = interrupt_count + 1;
  };
  for (size_t i = 0; i < kSignals.size(); ++i) {
    sigaction(kSignals[i], nullptr, &before_[i]);
    // Under nohup the study outlives its terminal. A shell's background job ignores SIGINT although
    // nobody asked for it, so an ignored SIGINT is still handled.
    if (kSignals[i] == SIGHUP && before_[i].sa_handler == SIG_IGN) continue;
    sigaction(kSignals[i], &action, nullptr);
  }
}

StopSignals::~StopSignals() {
  for (size_t i = 0; i < kSignals.size(); ++i) sigaction(kSignals[i], &before_[i], nullptr);
}

int StopSignals::count() { return stop_count; }
int StopSignals::interrupts() { return interrupt_count; }

}  // namespace tutti::study
