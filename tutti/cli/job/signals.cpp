#include "tutti/cli/job/signals.h"

#include <unistd.h>

#include <atomic>
#include <string_view>

#include "tutti/base/error.h"
#include "tutti/base/visible.h"
#include "tutti/cli/job/launcher_watch.h"
#include "tutti/cli/job/rank_table.h"

namespace tutti::cli {
namespace {

std::atomic<int> received{0};
std::atomic<bool> interrupted{false};
std::atomic<bool> saved{false};  // SignalFlags::ignore_from_now
std::atomic<bool> installed{false};
std::atomic<bool> started{false};  // a SignalFlags has existed
static_assert(std::atomic<int>::is_always_lock_free &&
              std::atomic<bool>::is_always_lock_free);  // a handler may touch nothing else
StartSignals at_start;                                  // does not change while handlers read it

/// A launcher that ends its ranks may wait for ever for the ranks of a host that does not answer.
void note_sender(int signal, const siginfo_t* info) {
  if (signal != SIGTERM || info->si_code > 0 || !is_launcher(info->si_pid)) return;
  own_row::note_sent_off();
  leave_launcher_watch();
}

void print_in_handler(std::string_view text) { write_output(STDERR_FILENO, text); }

constexpr std::string_view kSecondInterrupt =
    "tutti: ended at once by a second interrupt; checkpoints that were written stand\n";

void handle(int signal, siginfo_t* info, void*) {
  hurry_output();
  note_sender(signal, info);
  if (saved) return;
  if (signal == SIGINT && interrupted.exchange(true)) {
    if (at_start.speaks && !own_row::joined()) print_in_handler(kSecondInterrupt);
    std::signal(SIGINT, SIG_DFL);  // so that the launcher and the shell see which signal ended this
                                   // process
    std::raise(SIGINT);
  }
  int none = 0;
  received.compare_exchange_strong(none, signal);
}

void end_while_starting(int signal, siginfo_t* info, void*) {
  hurry_output();
  note_sender(signal, info);
  if (started) return;
  const int code = at_start.trains ? static_cast<int>(ExitCode::requeue) : 128 + signal;
  if (!own_row::end(code, "", signal) && at_start.speaks) {
    print_in_handler("tutti: stopped by ");
    print_in_handler(signal_name(signal));
    print_in_handler(at_start.trains
                         ? " before the first step: nothing has changed, the same command starts "
                           "it again\n"
                         : "\n");
  }
  _exit(code);
}

bool ignored(int signal) {
  struct sigaction now {};
  sigaction(signal, nullptr, &now);
  return now.sa_handler == SIG_IGN;
}

}  // namespace

void stop_while_starting(const StartSignals& start) {
  at_start = start;
  for (const int signal : {SIGTERM, SIGUSR1, SIGUSR2, SIGINT, SIGHUP}) {
    if (signal == SIGHUP && ignored(signal)) continue;
    struct sigaction action {};
    action.sa_sigaction = end_while_starting;
    action.sa_flags = SA_RESTART | SA_SIGINFO;
    sigaction(signal, &action, nullptr);
  }
}

const char* signal_name(int signal) {
  switch (signal) {
    case SIGHUP: return "signal 1 (SIGHUP)";
    case SIGINT: return "signal 2 (SIGINT)";
    case SIGUSR1: return "signal 10 (SIGUSR1)";
    case SIGUSR2: return "signal 12 (SIGUSR2)";
    case SIGTERM: return "signal 15 (SIGTERM)";
  }
  return "a signal";
}

// Kernels that oneDNN 2.6 generates keep values below the stack pointer, beyond the 128 bytes that
// a handler's frame leaves alone: a SIGTERM in a convolution ended in `double free` or a
// segmentation fault once in a hundred. So the handlers need another stack. Signals that are sent
// to a process reach its main thread as long as that does not block them.
SignalFlags::SignalFlags() : stack_(std::make_unique<std::byte[]>(kStack)) {
  CHECK(!installed.exchange(true), "two SignalFlags at a time");
  received = 0;
  interrupted = false;
  saved = false;
  const stack_t stack{.ss_sp = stack_.get(), .ss_flags = 0, .ss_size = kStack};
  sigaltstack(&stack, &stack_before_);
  for (size_t i = 0; i < kSignals.size(); ++i) {
    struct sigaction action {};
    const bool nothing = kSignals[i] == SIGCONT || (kSignals[i] == SIGHUP && ignored(kSignals[i]));
    // A request to stop must not make a read or write fail.
    action.sa_flags = SA_RESTART | SA_ONSTACK;
    if (nothing) {
      action.sa_handler = SIG_IGN;
    } else {
      action.sa_sigaction = handle;
      action.sa_flags |= SA_SIGINFO;
    }
    sigaction(kSignals[i], &action, &before_[i]);
  }
  started = true;
  own_row::set_state(RankState::stoppable);
}

SignalFlags::~SignalFlags() {
  own_row::set_state(RankState::over);
  for (size_t i = 0; i < kSignals.size(); ++i) sigaction(kSignals[i], &before_[i], nullptr);
  sigaltstack(&stack_before_, nullptr);
  installed = false;
}

void SignalFlags::ignore_from_now() noexcept { saved = true; }

int SignalFlags::signal_number() const noexcept { return received.load(std::memory_order_relaxed); }

}  // namespace tutti::cli
