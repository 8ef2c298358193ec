#pragma once
// Lane: the order of a rank's requests to one target. Internal to capi/remote.

#include <algorithm>
#include <deque>
#include <mutex>

namespace tutti::capi::remote {

/// Thread-safe.
class Lane {
 public:
  /// Enters behind the requests that are there.
  void enter(const void* who) {
    const std::lock_guard lock(mutex_);
    waiting_.push_back(who);
  }
  bool first(const void* who) {
    const std::lock_guard lock(mutex_);
    return waiting_.front() == who;
  }
  /// `broken`: the request was given up while messages were under way, so that no other can follow.
  void leave(const void* who, bool broken) {
    const std::lock_guard lock(mutex_);
    std::erase(waiting_, who);
    broken_ |= broken;
  }
  bool broken() {
    const std::lock_guard lock(mutex_);
    return broken_;
  }

 private:
  std::mutex mutex_;
  std::deque<const void*> waiting_;
  bool broken_ = false;
};

}  // namespace tutti::capi::remote
