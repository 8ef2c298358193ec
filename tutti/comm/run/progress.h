#pragma once
// Progress: the operations of a rank that are in flight, and the threads that move them forward:
// its own, each bound to a free core, or, without any, those that poll and wait.
//
// With threads, start() posts the first messages and hands the operation over; threads advance the
// most urgent operation that no other thread is advancing, and the owner's test() is one load. An
// owner that waits takes part, so that a wait costs no wake-up. Any thread may advance any
// operation, one at a time: the mutex orders the steps of different threads. Over MPI this needs
// MPI_THREAD_MULTIPLE, whose price is a lock around every call of the library;
// Communicator::set_progress refuses where it is missing.

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
  /// Starts one thread for each entry, bound to that processor. kNoCore: a thread that shares its
  /// core with others, so it polls only about ten thousand times a second; better than polling by
  /// the owner when kernels are long. Throws DeviceError when a thread cannot be bound.
  explicit Progress(std::span<const int> processors = {});
  /// With threads of kNoCore.
  explicit Progress(int threads)
      : Progress(std::vector<int>(static_cast<size_t>(threads), kNoCore)) {}
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  static constexpr int kNoCore = -1;
  int threads() const { return static_cast<int>(threads_.size()); }

  /// Takes an operation whose begin() has been called.
  void add(Operation& operation);
  /// Moves one operation a step forward, unless another thread is doing that.
  void advance(Operation& operation);
  /// Moves the operations a step forward on which other ranks may wait without this rank knowing.
  void serve_others();
  /// Moves every operation a step forward, the most urgent first. Returns how many are left,
  /// without those that only listen.
  size_t pass();
  /// Removes an operation; afterwards no thread is inside its advance().
  void withdraw(Operation& operation);
  /// Returns the operation's describe(), while no thread advances it.
  Pending describe(const Operation& operation);
  Pacer& pacer() { return pacer_; }
  /// Returns an object for sums and other local work of operations, which waiting threads share.
  SharedWork& work() { return work_; }
  bool empty() const;

 private:
  using Lock = std::unique_lock<std::mutex>;
  void step(Operation& operation, Lock& lock);
  Lock hold(const Operation& operation);
  void serve(const std::stop_token& stop, bool has_core);

  mutable std::mutex mutex_;
  std::condition_variable_any wake_;
  std::vector<Operation*> in_flight_;  // by priority, then in the order of their start
  Pacer pacer_;
  SharedWork work_;
  std::vector<std::jthread> threads_;  // last: they end before the rest does
};

}  // namespace tutti::comm
