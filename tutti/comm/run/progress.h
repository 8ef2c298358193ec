#pragma once
// Progress: the operations of a rank that are in flight, and who moves them forward: threads of its
// own, each bound to a core that is free, or, without any, whoever polls and waits.
//
// With threads, start() posts the first messages and hands the operation over; threads advance the
// most urgent operation that nobody is advancing, and the owner's test() is one load. An owner that
// waits lends a hand, so that a wait costs no wake-up. Any thread may advance any operation, one at
// a time: what one did is ordered before what the next does by the mutex. Over MPI this needs
// MPI_THREAD_MULTIPLE, whose price is a lock around every call of the library;
// Communicator::set_progress refuses where it is missing.

#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <mutex>
#include <span>
#include <thread>
#include <vector>

#include "tutti/base/shared_work.h"
#include "tutti/comm/run/operation.h"
#include "tutti/comm/run/pacer.h"

namespace tutti::comm {

/// Shared by a communicator and those split from it. Thread-safe.
class Progress {
 public:
  /// One thread for each entry, bound to that processor. kNoCore: a thread that shares its core
  /// with others, so it only looks about ten thousand times a second; better than polling when
  /// kernels are long. Throws DeviceError when a thread cannot be bound.
  explicit Progress(std::span<const int> processors = {});
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  static constexpr int kNoCore = -1;
  int threads() const { return static_cast<int>(threads_.size()); }

  /// Takes an operation whose begin() has been called.
  void add(Operation& operation);
  /// Moves one operation a step forward, unless another thread is doing that.
  void advance(Operation& operation);
  /// Moves those a step forward that other ranks may wait for without this one's knowing.
  void serve_others();
  /// Moves every operation a step forward, the most urgent first. Returns how many are left, but
  /// for those that only listen.
  size_t pass();
  /// Lets go of an operation; nobody is inside its advance() any more.
  void withdraw(Operation& operation);
  /// The operation's describe(), while nobody advances it.
  Pending describe(const Operation& operation);
  Pacer& pacer() { return pacer_; }
  /// Sums and other local work of operations, in which threads that wait take part.
  SharedWork& work() { return work_; }
  bool empty() const;

 private:
  using Lock = std::unique_lock<std::mutex>;
  void step(Operation& operation, Lock& lock);
  Lock hold(const Operation& operation);
  void serve(const std::stop_token& stop, bool has_core);

  mutable std::mutex mutex_;
  std::condition_variable_any wake_;
  std::vector<Operation*> in_flight_;  // the most urgent first, and in the order of their start
  Pacer pacer_;
  SharedWork work_;
  std::vector<std::jthread> threads_;  // last: they end before the rest does
};

}  // namespace tutti::comm
