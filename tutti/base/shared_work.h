#pragma once
// SharedWork: work of one thread that others take pieces of while they have nothing else to do. It
// starts no threads and blocks none: whoever waits anyway (at a barrier, for a message) calls
// help().

#include <atomic>
#include <cstddef>
#include <functional>

namespace tutti {

/// Thread-safe.
class SharedWork {
 public:
  /// Calls body(0) .. body(pieces - 1), each once, on this thread and on those that help, and
  /// returns when all have returned. `body` does not throw. A second run() meanwhile does its
  /// pieces alone.
  void run(size_t pieces, const std::function<void(size_t)>& body);
  /// Does pieces of a run() that is under way, until none is left to begin. One load where there is
  /// none.
  void help() {
    if (body_.load(std::memory_order_relaxed) != nullptr) take_part();
  }

 private:
  void take_part();

  std::atomic<bool> busy_{false};
  std::atomic<const std::function<void(size_t)>*> body_{nullptr};
  std::atomic<size_t> next_{0}, pieces_{0};
  std::atomic<int> inside_{0};  // who may be using what body_ points to
};

}  // namespace tutti
