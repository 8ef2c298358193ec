#pragma once
// Signals as requests: SIGTERM, SIGHUP, SIGUSR1, SIGUSR2 and the first SIGINT request an orderly
// stop (checkpoint, exit code 75); a second SIGINT ends the process at once; SIGCONT, which
// schedulers send before SIGTERM, has no effect. SIGHUP has none either if it is ignored when the
// process starts, as with nohup.

#include <array>
#include <csignal>
#include <cstddef>
#include <memory>

namespace tutti::cli {

struct StartSignals {
  bool trains = false;  ///< the process ends with 75, to be started again; otherwise with a shell's
                        ///< code: 128 + signal
  bool speaks = true;   ///< it prints the line, unless another process does that for the job
};
/// Until a SignalFlags exists, makes a request to stop end this process at once with a line: also
/// inside MPI_Init, and where the signal's default action would have been silent. Nothing has been
/// computed that is worth a checkpoint. After the last SignalFlags requests are ignored: the work
/// is done.
void stop_while_starting(const StartSignals& start);

/// Returns "signal 15 (SIGTERM)". Must not be called in a handler.
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
  int signal_number() const noexcept;  ///< the first signal received, or 0
  /// The run is saved as requested: further signals have no effect, not even a second SIGINT.
  void ignore_from_now() noexcept;

 private:
  static constexpr std::array kSignals = {SIGTERM, SIGUSR1, SIGUSR2, SIGINT, SIGHUP, SIGCONT};
  std::array<struct sigaction, kSignals.size()> before_{};
  static constexpr size_t kStack =
      64 << 10;  // the frame alone holds all vector registers, with tiles 12 KiB
  std::unique_ptr<std::byte[]> stack_;
  stack_t stack_before_{};
};

}  // namespace tutti::cli
