#pragma once
// A barrier for a fixed team that meets every fraction of a millisecond: spins briefly, then
// yields, so that it is quick when every thread has a core and harmless when not.

#include <atomic>
#include <thread>

namespace tutti::plan {

/// Counts to a limit and stops there: a wait of hours must not overflow the counter of its polls.
template <class Count>
class LimitedCount {
 public:
  explicit constexpr LimitedCount(Count limit) : left_(limit) {}
  /// Returns true as often as the limit says, then false for ever.
  constexpr bool next() {
    if (left_ == 0) return false;
    --left_;
    return true;
  }

 private:
  Count left_;
};

class Barrier {
 public:
  /// Thrown by wait() in the other threads of the team once one of them has failed.
  struct Broken {};

  explicit Barrier(int threads) : threads_(threads) {}

  /// Call this when the thread will not come: nobody waits any more, now or later.
  void break_up() { broken_.store(true, std::memory_order_release); }
  bool broken() const { return broken_.load(std::memory_order_acquire); }

  void wait() {
    wait([] {});
  }
  /// `idle` is called again and again until all have come.
  template <class Idle>
  void wait(const Idle& idle) {
    if (threads_ == 1) return;
    const uint32_t phase = phase_.load(std::memory_order_acquire);
    if (arrived_.fetch_add(1, std::memory_order_acq_rel) + 1 == threads_) {
      arrived_.store(0, std::memory_order_relaxed);
      phase_.store(phase + 1, std::memory_order_release);
      return;
    }
    for (LimitedCount<int> spins(kSpins); phase_.load(std::memory_order_acquire) == phase;) {
      idle();
      if (spins.next()) continue;
      if (broken()) throw Broken{};
      std::this_thread::yield();
    }
  }

 private:
  static constexpr int kSpins =
      20000;  // some tens of microseconds: longer than the usual imbalance of two threads
  const int threads_;
  alignas(64) std::atomic<int> arrived_{0};
  alignas(64) std::atomic<uint32_t> phase_{0};
  std::atomic<bool> broken_{false};
};

}  // namespace tutti::plan
