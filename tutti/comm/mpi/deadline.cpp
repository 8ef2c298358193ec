#include "tutti/comm/mpi/deadline.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>

#include "tutti/comm/launcher.h"

namespace tutti::comm {
namespace {

constexpr double kDeadlineLook = 0.5;  // seconds

}  // namespace

Deadline::Deadline(std::string what, double seconds)
    : watch_([this, what = std::move(what), seconds] {
        std::unique_lock lock(mutex_);
        // In short waits, so that time in which the process is stopped, as by Ctrl-Z, counts
        // little.
        for (double left = seconds; left > 0; left -= kDeadlineLook)
          if (ended_.wait_for(lock, std::chrono::duration<double>(std::min(left, kDeadlineLook)),
                              [this] { return over_; }))
            return;
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
