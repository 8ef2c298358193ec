#pragma once
// ProgressThread: the works of this process that are under way, and the thread that moves them on
// and says so when they are complete. It serves all process groups, and ends with the process.

#include <condition_variable>
#include <mutex>
#include <thread>
#include <vector>

#include "work.h"

namespace tutti_torch {

/// Thread-safe.
class ProgressThread {
 public:
  static ProgressThread& get();
  /// Whether there is a thread: TUTTI_TORCH_PROGRESS_THREADS, 1 where it is not set. Throws
  /// ValueError.
  static bool wanted();
  ~ProgressThread();
  ProgressThread(const ProgressThread&) = delete;
  ProgressThread& operator=(const ProgressThread&) = delete;

  /// Keeps a work until it is complete. Without a thread (TUTTI_TORCH_PROGRESS_THREADS=0), this
  /// call moves on what was given before.
  void add(c10::intrusive_ptr<TuttiWork> work);

 private:
  ProgressThread();
  bool pass();
  bool caller_computes();
  void serve(const std::stop_token& stop);

  std::mutex mutex_;
  std::condition_variable_any wake_;
  std::vector<c10::intrusive_ptr<TuttiWork>> works_;
  clockid_t caller_ =
      CLOCK_REALTIME;  // what the processor does for the thread that called add() last
  std::vector<c10::intrusive_ptr<TuttiWork>> looked_at_;  // of pass()
  std::chrono::nanoseconds computed_{};  // that clock, when it was looked at, at this time
  std::chrono::steady_clock::time_point computed_at_{};
  std::jthread thread_;  // last: it ends before the rest does
};

}  // namespace tutti_torch
