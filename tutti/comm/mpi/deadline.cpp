#include "tutti/comm/mpi/deadline.h"

#include <fmt/format.h>

#include <cstdio>
#include <cstdlib>

namespace tutti::comm {

Deadline::Deadline(std::string what, double seconds)
    : watch_([this, what = std::move(what), seconds] {
        std::unique_lock lock(mutex_);
        if (ended_.wait_for(lock, std::chrono::duration<double>(seconds), [this] { return over_; }))
          return;
        const std::string text = fmt::format(
            "{}: no answer within {:g} s: another rank is stuck, gone, or does something else\n",
            what, seconds);
        std::fputs(text.c_str(), stderr);  // does not throw where nobody listens any more
        std::fflush(stderr);
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
