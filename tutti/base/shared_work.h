#pragma once
// SharedWork: work of one thread, of which other threads take pieces while they are idle. It starts
// no threads and blocks none: a thread that waits anyway (at a barrier, for a message) calls
// help().

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <functional>

namespace tutti {

/// Cuts `length` elements into pieces of equal size, except the last: a function of the length
/// alone, so that sums over pieces have the same bits with any number of threads.
class Pieces {
 public:
  static constexpr size_t kMost = 64;
  /// Pieces are multiples of `unit` and at least `least` long, itself a multiple of it; there are
  /// at most kMost.
  Pieces(size_t length, size_t unit, size_t least)
      : length_(length),
        size_(std::max(least, ((length + kMost - 1) / kMost + unit - 1) / unit * unit)) {}
  size_t count() const { return (length_ + size_ - 1) / size_; }
  size_t begin(size_t i) const { return i * size_; }
  size_t length(size_t i) const { return std::min(size_, length_ - begin(i)); }

 private:
  size_t length_, size_;
};

/// Shares pieces of work between threads. Thread-safe.
class SharedWork {
 public:
  /// Calls body(0) .. body(pieces - 1), each once, on this thread and on threads that help, and
  /// returns when all calls have returned. `body` does not throw. A second run() at the same time
  /// computes its pieces alone.
  void run(size_t pieces, const std::function<void(size_t)>& body);
  /// Does the same; on this thread alone if `work` is null.
  static void run(SharedWork* work, size_t pieces, const std::function<void(size_t)>& body) {
    if (work != nullptr) return work->run(pieces, body);
    for (size_t i = 0; i < pieces; ++i) body(i);
  }
  /// Computes pieces of a run() that is under way, until none is left to begin. Costs one load if
  /// there is none.
  void help() {
    if (body_.load(std::memory_order_relaxed) != nullptr) take_part();
  }

 private:
  void take_part();

  std::atomic<bool> busy_{false};
  std::atomic<const std::function<void(size_t)>*> body_{nullptr};
  std::atomic<size_t> next_{0}, pieces_{0};
  std::atomic<int> inside_{0};  // threads that may be using the target of body_
};

}  // namespace tutti
