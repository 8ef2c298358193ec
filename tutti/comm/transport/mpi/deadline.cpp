#include "tutti/comm/transport/mpi/deadline.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>

#include "tutti/comm/bootstrap/launcher.h"

namespace tutti::comm {
namespace {

using Clock = std::chrono::steady_clock;
constexpr double kDeadlineLook = 0.5;     // seconds
constexpr double kDeadlineStopped = 2.0;  // between two looks: this process did not run

}  // namespace

Deadline::Deadline(std::string what, double seconds)
    : watch_([this, what = std::move(what), seconds] {
        std::unique_lock lock(mutex_);
        // In short waits, so that time in which the process is stopped, as by Ctrl-Z, counts
        // little. On a busy machine each lasts longer than it was asked to.
        auto last = Clock::now();
        for (double left = seconds; left > 0;) {
          if (ended_.wait_for(lock, std::chrono::duration<double>(std::min(left, kDeadlineLook)),
                              [this] { return over_; }))
            return;
          const auto now = Clock::now();
          const double passed = std::chrono::duration<double>(now - last).count();
          left -= passed < kDeadlineStopped ? passed : kDeadlineLook;
          last = now;
        }
        const std::string text = fmt::format(
            "{}: no answer within {:g} s: another rank is stuck, gone, or does something else",
            what, seconds);
        do_last_act(text);
        std::_Exit(1);
      }) {}

Deadline::~Deadline() {
  {
    const std::lock_guard lock(mutex_);
    over_ = true;
  }
  ended_.notify_one();
  watch_.join();
}

}  // namespace tutti::comm
