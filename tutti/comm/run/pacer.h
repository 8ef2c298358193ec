#pragma once
// Pacer: limits how much of large operations a rank hands to its link ahead of time, so that an
// urgent operation can still overtake. Bytes that a link has been given go before all later ones.
//
// Large operations run in chunks. A chunk begins when the bytes that are leaving, over all
// operations of the rank, are less than a window, and nothing more urgent has chunks to begin. The
// window is small at first. It doubles whenever a look finds that everything had left while chunks
// had yet to begin, because then the link has idled since the look before, and shrinks a little
// after a while without that. So a rank that looks rarely keeps its link busy, and a rank that
// looks often lets urgent operations pass soon.
//
// Only leaving bytes count, not those that have yet to arrive: ranks may begin chunks in different
// orders, and must not wait for each other's. For the same reason receivers make space for the next
// chunks before they begin their own (Channel::expect), and bytes that have been leaving for a long
// time, because their receiver is not there yet, do not count.

#include <chrono>
#include <cstddef>
#include <mutex>
#include <vector>

namespace tutti::comm {

/// One per rank, for all its operations. Thread-safe.
class Pacer {
 public:
  using Clock = std::chrono::steady_clock;
  static constexpr size_t kLeastWindow = size_t{1} << 20, kMostWindow = size_t{16} << 20;

  /// The chunks of one operation. Must not move between enter() and leave().
  class Flow {
   public:
    explicit Flow(int priority = 0) : priority_(priority) {}

   private:
    friend class Pacer;
    int priority_;
    size_t leaving_ = 0, were_leaving_ = 0;  // bytes
    bool more_ = false;
    Clock::time_point began_{};
  };

  void enter(Flow& flow, int priority);
  void leave(Flow& flow);
  /// Reports the state of an operation: bytes that are leaving, how many there were when this look
  /// began, and whether it has chunks left to begin.
  void note(Flow& flow, size_t leaving, size_t were_leaving, bool more);
  /// Returns whether `flow` may begin a chunk.
  bool may_begin(const Flow& flow, Clock::time_point now = Clock::now());
  /// Adapts the window; to be called after a look at all operations.
  void look_over();
  size_t window() const;

 private:
  static constexpr int kCalm = 64;  // chunks begun before the window shrinks
  mutable std::mutex mutex_;
  std::vector<Flow*> flows_;
  size_t window_ = kLeastWindow;
  int begun_ = 0;  // since the window changed
};

}  // namespace tutti::comm
