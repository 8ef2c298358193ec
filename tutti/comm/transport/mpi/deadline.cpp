#include "tutti/comm/transport/mpi/deadline.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>

#include "tutti/base/running_time.h"
#include "tutti/comm/bootstrap/launcher.h"

namespace tutti::comm {

Deadline::Deadline(std::string what, double seconds)
    : watch_([this, what = std::move(what), seconds] {
        std::unique_lock lock(mutex_);
        constexpr std::chrono::duration<double> kLook = RunningTime::kLook;
        RunningTime waited;
        for (double left = seconds; left > 0; left = seconds - waited.seconds())
          if (ended_.wait_for(lock, std::min(std::chrono::duration<double>(left), kLook),
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
