#pragma once
// Pacer: how much of large operations a rank hands to its link ahead of time, so that an urgent one
// can still overtake. What a link has been given goes first, whatever comes after.
//
// Large operations run in chunks. A chunk begins when what is leaving, over all operations of the
// rank, is less than a window of bytes, and nothing more urgent has chunks to begin. The window is
// small at first. It doubles whenever a look finds that everything had left while chunks had yet to
// begin, because then the link has idled since the look before, and shrinks a little after a while
// without that. So a rank that looks rarely keeps its link busy, and one that looks often lets
// urgent operations pass soon.
//
// What counts is what leaves, not what has yet to arrive: ranks may begin chunks in different
// orders, and must not wait for each other's. For the same reason receivers make room for the next
// chunks before they begin their own (Channel::expect), and what has been leaving for a long time,
// because its receiver is not there yet, does not count.

#include <chrono>
#include <cstddef>
#include <mutex>
#include <vector>

namespace tutti::comm {

/// Of one rank, for all its operations. Thread-safe.
class Pacer {
 public:
  using Clock = std::chrono::steady_clock;
  static constexpr size_t kLeastWindow = size_t{1} << 20, kMostWindow = size_t{16} << 20;

  /// One operation's chunks. Between enter() and leave() it stays where it is.
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
  /// How an operation stands: bytes that are leaving, how many there were when this look began, and
  /// whether it has chunks left to begin.
  void note(Flow& flow, size_t leaving, size_t were_leaving, bool more);
  /// Whether `flow` may begin a chunk.
  bool may_begin(const Flow& flow, Clock::time_point now = Clock::now());
  /// After a look at all operations.
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
