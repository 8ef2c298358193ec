#pragma once
// Measures how long a process has waited, for time-outs and for reports of waiting. A job that is
// stopped as a whole, by Ctrl-Z or by a scheduler that suspends it, has not been waiting: no rank
// could answer.

#include <chrono>

namespace tutti {

/// Not thread-safe: each waiting thread has its own.
class RunningTime {
 public:
  using Clock = std::chrono::steady_clock;
  /// If two calls of seconds() are this far apart, this process did not run in between. That time
  /// counts as kLook. On a busy machine calls come late; where all of them take so long, a wait may
  /// last up to four times as long.
  static constexpr std::chrono::seconds kStopped{2};
  static constexpr std::chrono::milliseconds kLook{500};

  explicit RunningTime(Clock::time_point now = Clock::now()) : last_(now) {}
  /// Returns the seconds since the construction, without time in which this process was stopped.
  /// REQUIRES: called every kLook or so.
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
