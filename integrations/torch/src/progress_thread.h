#pragma once
// ProgressThread: the works of this process that are under way, and the thread that moves them on
// and says so when they are complete. It serves all process groups, until Python ends.

#include <sys/types.h>

#include <atomic>
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
  /// Whether there is to be a thread: TUTTI_TORCH_PROGRESS_THREADS, 1 where it is not set. Throws
  /// ValueError.
  static bool wanted();
  /// Whether there is one. Without, works are moved on by whoever asks for them.
  bool runs() const { return runs_; }
  ~ProgressThread();
  ProgressThread(const ProgressThread&) = delete;
  ProgressThread& operator=(const ProgressThread&) = delete;

  /// Keeps a work until it is complete. Without a thread this call moves on what was given before.
  void add(c10::intrusive_ptr<TuttiWork> work);
  /// Ends the thread. For Python's atexit, and without its lock: afterwards Python ends any thread
  /// that calls back into it, in the middle of destructors and of whatever else.
  void stop();

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
  std::atomic<bool> runs_ = false;
  pid_t process_;        // that has the thread: a copy made by fork() has none
  std::jthread thread_;  // last: it ends before the rest does
};

}  // namespace tutti_torch
