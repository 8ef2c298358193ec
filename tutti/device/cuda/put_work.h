#pragma once
// Work that was put on streams: counts of it, and the host work that must live until it has run.

#include <atomic>
#include <exception>
#include <list>
#include <memory>
#include <mutex>

#include "tutti/device/device.h"

namespace tutti::device {

/// The first exception of host work that nobody has seen yet. Thread-safe.
class HostFailure {
 public:
  void keep(std::exception_ptr failure);
  /// Throws it, once; returns if there is none.
  void rethrow();

 private:
  std::mutex mutex_;
  std::exception_ptr failure_;
};

/// One piece of host work on its way. CUDA calls run() on a thread of its own, where nothing of
/// CUDA may be called: so the work ends elsewhere, after that.
class HostCall {
 public:
  HostCall(std::shared_ptr<HostWork> work, std::shared_ptr<HostFailure> failure)
      : work_(std::move(work)), failure_(std::move(failure)) {}
  /// `call` is a HostCall.
  static void run(void* call) noexcept;
  bool has_run() const { return has_run_; }

 private:
  std::shared_ptr<HostWork> work_;
  std::shared_ptr<HostFailure> failure_;  // shared with the device, which may end before it
  std::atomic<bool> has_run_ = false;
};

/// Put on streams since a device was opened, or between the ends of a recording.
struct PutWork {
  int64_t launches = 0, copies = 0, copied_bytes = 0, fills = 0, host_work = 0, replays = 0;
  std::list<HostCall> calls;

  int64_t all() const { return launches + copies + fills + host_work; }
  /// Adds a replay of a recording.
  void add_replay(const PutWork& recorded);
};

}  // namespace tutti::device
