#pragma once
// How long a process has waited, for time-outs and for what a wait is booked as. A job that is
// stopped as a whole, as by Ctrl-Z or a scheduler that suspends it, has not been waiting: nobody
// could answer.

#include <chrono>

namespace tutti {

/// Not thread-safe: who waits has one.
class RunningTime {
 public:
  using Clock = std::chrono::steady_clock;
  /// Between two looks at the clock: this process did not run. It counts as kLook. On a busy
  /// machine each look comes later than it should; one on which every look takes so long waits up
  /// to four times as long.
  static constexpr std::chrono::seconds kStopped{2};
  static constexpr std::chrono::milliseconds kLook{500};

  explicit RunningTime(Clock::time_point now = Clock::now()) : last_(now) {}
  /// Seconds since the construction, less those in which this process was stopped. REQUIRES: asked
  /// every kLook or so.
  double seconds(Clock::time_point now = Clock::now()) {
    const Clock::duration passed = now - last_;
    last_ = now;
    sum_ += passed < kStopped ? passed : Clock::duration(kLook);
    return std::chrono::duration<double>(sum_).count();
  }

 private:
  Clock::time_point last_;
  Clock::duration sum_{};
};

}  // namespace tutti
