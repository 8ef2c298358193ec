#pragma once
// StepTimer: how long a part of a step takes, where a profile is made.

#include <chrono>

namespace tutti::plan {

/// Adds the time between its construction and its end to `total` when profiling.
class StepTimer {
 public:
  StepTimer(bool on, double& total)
      : total_(on ? &total : nullptr),
        start_(on ? std::chrono::steady_clock::now() : std::chrono::steady_clock::time_point{}) {}
  ~StepTimer() {
    if (total_)
      *total_ += std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count();
  }
  StepTimer(const StepTimer&) = delete;
  StepTimer& operator=(const StepTimer&) = delete;

 private:
  double* total_;
  std::chrono::steady_clock::time_point start_;
};

}  // namespace tutti::plan
