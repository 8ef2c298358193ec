#pragma once
// ProgressThread: the works of this process that are under way, and the thread that progresses them
// and reports their completion. It serves all process groups, until Python ends.

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
  /// Whether a thread is wanted: TUTTI_TORCH_PROGRESS_THREADS, 1 if it is not set. Throws
  /// ValueError.
  static bool wanted();
  /// Whether the thread runs. Without it, the threads that wait for works progress them.
  bool runs() const { return runs_; }
  ~ProgressThread();
  ProgressThread(const ProgressThread&) = delete;
  ProgressThread& operator=(const ProgressThread&) = delete;

  /// Keeps a work until it is complete. Without a thread this call progresses the works given
  /// before.
  void add(c10::intrusive_ptr<TuttiWork> work);
  /// Ends the thread. For Python's atexit, and without its lock: afterwards Python ends any thread
  /// that calls back into it, for example in the middle of destructors.
  void stop();

 private:
  ProgressThread();
  bool pass();
  bool caller_computes();
  void serve(const std::stop_token& stop);

  std::mutex mutex_;
  std::condition_variable_any wake_;
  std::vector<c10::intrusive_ptr<TuttiWork>> works_;
  clockid_t caller_ = CLOCK_REALTIME;  // processor time of the thread that last called add()
  std::vector<c10::intrusive_ptr<TuttiWork>> looked_at_;  // used in pass()
  std::chrono::nanoseconds computed_{};  // that clock's last reading, made at computed_at_
  std::chrono::steady_clock::time_point computed_at_{};
  std::atomic<bool> runs_ = false;
  pid_t process_;        // the process that has the thread: a fork() has none
  std::jthread thread_;  // last, so that it ends before the other members
};

}  // namespace tutti_torch
