#pragma once
// Signals as wishes: SIGTERM, SIGHUP, SIGUSR1, SIGUSR2 and the first SIGINT ask for an orderly stop
// (checkpoint, exit code 75); a second SIGINT ends the process at once; SIGCONT, which schedulers
// send before SIGTERM, means nothing. SIGHUP means nothing either where it is ignored when the
// process starts: that is what nohup does.

#include <array>
#include <csignal>
#include <cstddef>
#include <memory>

namespace tutti {

struct StartSignals {
  bool trains = false;  ///< the process ends with 75, to be started again; else as a shell would
                        ///< say it: 128 + signal
  bool speaks = true;   ///< it prints the line, unless another process does that for the job
};
/// From now on, while no SignalFlags lives, a wish to stop ends this process at once with a line:
/// also inside MPI_Init, and where its default action would have been silent. Nothing has been
/// computed that is worth a checkpoint. After the last SignalFlags wishes are ignored: the work is
/// done.
void stop_while_starting(const StartSignals& start);

/// "signal 15 (SIGTERM)". May be called anywhere but in a handler.
const char* signal_name(int signal);

/// Installs the handlers for its lifetime and restores the former ones; on a stack of their own
/// where they interrupt the thread that made this. At most one at a time; stop_requested() may be
/// called from any thread and is one relaxed load, cheap enough for every step.
class SignalFlags {
 public:
  SignalFlags();
  ~SignalFlags();
  SignalFlags(const SignalFlags&) = delete;
  SignalFlags& operator=(const SignalFlags&) = delete;

  bool stop_requested() const noexcept { return signal_number() != 0; }
  int signal_number() const noexcept;  ///< the first one received, or 0
  /// The run is saved as it was asked to be: further signals mean nothing, also a second SIGINT.
  void ignore_from_now() noexcept;

 private:
  static constexpr std::array kSignals = {SIGTERM, SIGUSR1, SIGUSR2, SIGINT, SIGHUP, SIGCONT};
  std::array<struct sigaction, kSignals.size()> before_{};
  static constexpr size_t kStack =
      64 << 10;  // the frame alone holds all vector registers, with tiles 12 KiB
  std::unique_ptr<std::byte[]> stack_;
  stack_t stack_before_{};
};

}  // namespace tutti
