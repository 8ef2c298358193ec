#include "tutti/cli/signals.h"

#include <atomic>

#include "tutti/base/error.h"

namespace tutti {
namespace {

std::atomic<int> received{0};
std::atomic<bool> interrupted{false};
std::atomic<bool> installed{false};
static_assert(std::atomic<int>::is_always_lock_free &&
              std::atomic<bool>::is_always_lock_free);  // a handler may touch nothing else

void handle(int signal) {
  if (signal == SIGINT && interrupted.exchange(true)) {
    std::signal(SIGINT, SIG_DFL);  // so that the launcher and the shell see what ended this process
    std::raise(SIGINT);
  }
  int none = 0;
  received.compare_exchange_strong(none, signal);
}

}  // namespace

// Kernels that oneDNN 2.6 generates keep values below the stack pointer, further than the 128 bytes
// that a handler's frame leaves alone: a SIGTERM in a convolution ended in `double free` or a
// segmentation fault once in a hundred. So the handlers need another stack. Signals that are sent
// to a process reach its main thread as long as that does not block them.
SignalFlags::SignalFlags() : stack_(std::make_unique<std::byte[]>(kStack)) {
  CHECK(!installed.exchange(true), "two SignalFlags at a time");
  received = 0;
  interrupted = false;
  const stack_t stack{.ss_sp = stack_.get(), .ss_flags = 0, .ss_size = kStack};
  sigaltstack(&stack, &stack_before_);
  for (size_t i = 0; i < kSignals.size(); ++i) {
    struct sigaction action {};
    action.sa_handler = kSignals[i] == SIGCONT ? SIG_IGN : handle;
    action.sa_flags = SA_RESTART | SA_ONSTACK;  // a stop wish must not make a read or write fail
    sigaction(kSignals[i], &action, &before_[i]);
  }
}

SignalFlags::~SignalFlags() {
  for (size_t i = 0; i < kSignals.size(); ++i) sigaction(kSignals[i], &before_[i], nullptr);
  sigaltstack(&stack_before_, nullptr);
  installed = false;
}

int SignalFlags::signal_number() const noexcept { return received.load(std::memory_order_relaxed); }

}  // namespace tutti
