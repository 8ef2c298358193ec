#pragma once
// A run as a child process, and the signals that end a study.

#include <signal.h>
#include <sys/types.h>

#include <array>
#include <string>
#include <vector>

namespace tutti::study {

/// A child in a process group of its own (a terminal's Ctrl-C reaches it through us, once), output
/// and errors on one pipe. It gets SIGTERM when this process dies, which training answers with a
/// checkpoint. Descriptors without O_CLOEXEC stay open in it: lock_study() relies on that.
class Child {
 public:
  explicit Child(const std::vector<std::string>& command);  ///< throws IoError
  ~Child();                                                 ///< kills what still runs
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;

  int output() const { return output_; }
  void ask_to_stop() const { kill(pid_, SIGTERM); }
  /// At the second call a run ends at once, and its ranks with it.
  void interrupt() const { kill(pid_, SIGINT); }
  void kill_group() const { kill(-pid_, SIGKILL); }
  /// True, with the wait status, once it has ended.
  bool ended(int& status);

 private:
  pid_t pid_ = -1;
  int output_ = -1, status_ = 0;
  bool waited_ = false;
};

/// Of a child that the system does not hand over, as where SIGCHLD is ignored.
constexpr int kLostStatus = -1;

/// "exit code 1", "killed by signal 9 (Killed)".
std::string describe_status(int status);

/// While it lives, SIGINT, SIGTERM, SIGHUP, SIGUSR1 and SIGUSR2 are counted and interrupt poll(2)
/// instead of ending the study. An ignored SIGHUP (nohup) stays ignored.
class StopSignals {
 public:
  StopSignals();
  ~StopSignals();
  StopSignals(const StopSignals&) = delete;
  StopSignals& operator=(const StopSignals&) = delete;
  static int count();
  static int interrupts();  ///< of these, SIGINTs

 private:
  static constexpr std::array<int, 5> kSignals = {SIGINT, SIGTERM, SIGHUP, SIGUSR1, SIGUSR2};
  std::array<struct sigaction, kSignals.size()> before_{};
};

}  // namespace tutti::study
