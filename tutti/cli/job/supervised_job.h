#pragma once
// Jobs for tests of supervise(): a shell or a child of the test replaces MPI's launcher, and
// children of that replace its ranks.

#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <functional>
#include <mutex>
#include <string>
#include <thread>

#include "tutti/base/process_state.h"
#include "tutti/cli/job/supervise.h"

namespace tutti::cli {

struct Ended {
  int code = 0;
  std::string printed;
};

/// In the launcher: the descriptor of the supervisor's errors.
inline int supervisors_errors = -1;

/// Returns the code of a job whose launcher is a child that runs `launcher`; its ranks are
/// children of that.
inline int code_of_job(const RankTable& table, const Patience& patience,
                       const std::function<int()>& launcher) {
  int errors[2];
  EXPECT_EQ(pipe(errors), 0);
  const sigset_t signals = supervised_signals();
  sigset_t before;
  sigprocmask(SIG_BLOCK, &signals, &before);
  const pid_t child = fork();
  if (child == 0) {
    sigprocmask(SIG_SETMASK, &before, nullptr);
    supervisors_errors = dup(STDERR_FILENO);
    dup2(errors[1], STDERR_FILENO);
    close(errors[1]);
    _exit(launcher());
  }
  close(errors[1]);
  const int code = supervise({.launcher = child, .output = errors[0]}, table, patience);
  close(errors[0]);
  sigprocmask(SIG_SETMASK, &before, nullptr);
  return code;
}

inline Ended supervised(const RankTable& table, const Patience& patience,
                        const std::function<int()>& launcher) {
  testing::internal::CaptureStderr();
  const int code = code_of_job(table, patience, launcher);
  return {code, testing::internal::GetCapturedStderr()};
}

/// Makes this process's standard error, until the destructor, a pipe whose reader sleeps for so
/// long and then reads all.
class SlowReader {
 public:
  SlowReader(std::chrono::milliseconds sleep, int flags) : before_(dup(STDERR_FILENO)) {
    int ends[2];
    EXPECT_EQ(pipe2(ends, O_CLOEXEC), 0);
    fcntl(ends[1], F_SETFL, flags);
    dup2(ends[1], STDERR_FILENO);
    close(ends[1]);
    sigset_t all, before;  // a signal to this process must not be delivered to that thread
    sigfillset(&all);
    sigprocmask(SIG_SETMASK, &all, &before);
    reader_ = std::thread([this, sleep, end = ends[0]] {
      std::unique_lock lock(mutex_);
      woken_.wait_for(lock, sleep, [this] { return over_; });
      lock.unlock();
      reads_ = true;
      char bytes[1000];
      for (ssize_t count; (count = read(end, bytes, sizeof bytes)) > 0;)
        text_.append(bytes, static_cast<size_t>(count));
      close(end);
    });
    sigprocmask(SIG_SETMASK, &before, nullptr);
  }
  ~SlowReader() { text(); }
  SlowReader(const SlowReader&) = delete;
  SlowReader& operator=(const SlowReader&) = delete;

  bool reads() const { return reads_; }

  /// Returns all that was written; standard error is restored.
  std::string text() {
    if (!reader_.joinable()) return text_;
    dup2(before_, STDERR_FILENO);
    close(before_);
    {
      const std::lock_guard lock(mutex_);
      over_ = true;
    }
    woken_.notify_one();
    reader_.join();
    return text_;
  }

 private:
  int before_;
  std::mutex mutex_;
  std::condition_variable woken_;
  bool over_ = false;
  std::atomic<bool> reads_ = false;  ///< it has begun to
  std::thread reader_;
  std::string text_;
};

inline pid_t start_rank(const RankTable& table, int rank, const std::function<void()>& work,
                        int ranks_here = -1) {
  const pid_t child = fork();
  if (child == 0) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    own_row::join(table.value(), {rank, table.ranks(), ranks_here});
    work();
    _exit(0);
  }
  return child;
}

/// Waits, in the parent's process, until the child's row has this state.
inline void until(const RankTable& table, int rank, RankState state) {
  while (table.row(rank).state != state) usleep(1000);
}

/// Returns false for a process that has ended and whose new parent has not collected its status
/// yet.
inline bool runs(pid_t process) {
  const auto state = process_state(process);
  return state && state->runs();
}

/// Returns the wait status of a child that has ended or will end.
inline int status_of(pid_t child) {
  int status = -1;
  waitpid(child, &status, 0);
  return status;
}

/// Waits for a signal that ends the process; stands for the result of a launcher, too.
[[noreturn]] inline int idle() {
  for (;;) pause();
}

/// The work of a rank that stays in this state.
[[noreturn]] inline void stay(RankState state) {
  own_row::set_state(state);
  idle();
}

/// The work of a rank that waits in this state for the signal, and then ends with code 75.
inline void end_at(int signal, RankState state = RankState::stoppable) {
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, signal);
  sigprocmask(SIG_BLOCK, &set, nullptr);
  own_row::set_state(state);
  int got = 0;
  sigwait(&set, &got);
  own_row::end(75, "");
}

inline size_t count(const std::string& text, const std::string& part) {
  size_t found = 0;
  for (size_t at = 0; (at = text.find(part, at)) != text.npos; ++at) ++found;
  return found;
}

}  // namespace tutti::cli
