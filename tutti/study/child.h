#pragma once
// Runs a training as a child process, and handles the signals that end a study.

#include <signal.h>
#include <sys/types.h>

#include <array>
#include <string>
#include <vector>

namespace tutti::study {

/// A child in a process group of its own (a terminal's Ctrl-C reaches it once, through this
/// process), with output and errors on one pipe. When this process dies the child gets SIGTERM, on
/// which training writes a checkpoint. Descriptors without O_CLOEXEC stay open in it: lock_study()
/// relies on that.
class Child {
 public:
  explicit Child(const std::vector<std::string>& command);  ///< throws IoError
  ~Child();                                                 ///< kills it if it still runs
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;

  int output() const { return output_; }
  void ask_to_stop() const { kill(pid_, SIGTERM); }
  /// On the second call a run ends at once, with its ranks.
  void interrupt() const { kill(pid_, SIGINT); }
  void kill_group() const { kill(-pid_, SIGKILL); }
  /// Returns true, with the wait status, once it has ended.
  bool ended(int& status);

 private:
  pid_t pid_ = -1;
  int output_ = -1, status_ = 0;
  bool waited_ = false;
};

/// Wait status of a child that the system does not report, for example if SIGCHLD is ignored.
constexpr int kLostStatus = -1;

/// Returns text like "exit code 1", "killed by signal 9 (Killed)".
std::string describe_status(int status);

/// While an object lives, SIGINT, SIGTERM, SIGHUP, SIGUSR1 and SIGUSR2 are counted and interrupt
/// poll(2) instead of ending the study. An ignored SIGHUP (nohup) stays ignored.
class StopSignals {
 public:
  StopSignals();
  ~StopSignals();
  StopSignals(const StopSignals&) = delete;
  StopSignals& operator=(const StopSignals&) = delete;
  static int count();
  static int interrupts();  ///< number of SIGINTs among them

 private:
  static constexpr std::array<int, 5> kSignals = {SIGINT, SIGTERM, SIGHUP, SIGUSR1, SIGUSR2};
  std::array<struct sigaction, kSignals.size()> before_{};
};

}  // namespace tutti::study
