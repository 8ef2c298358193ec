#pragma once
// Operation: an action of several ranks, planned once and started many times. Only wait() blocks.

#include <atomic>
#include <chrono>
#include <cstdint>
#include <exception>
#include <functional>
#include <string>
#include <vector>

namespace tutti::comm {

class Communicator;
class Pacer;

/// Describes what an unfinished operation waits for, as far as this rank knows; becomes the
/// message of the CommError. Nothing is known here of a rank in neither list.
struct Pending {
  std::string operation;     ///< "reduction 'bucket 3'"
  uint64_t sequence = 0;     ///< how often the operation was started, this time included
  std::vector<int> arrived;  ///< ranks whose share is here
  std::vector<int> missing;  ///< ranks whose share this rank waits for
  size_t passed = 0;         ///< rounds, or messages, of this start that are complete
  bool operator==(const Pending&) const = default;
};

/// Not thread-safe for its owner: a communicator and all its operations belong to one thread at a
/// time. From start() to completion the threads of comm/run/progress.h may move it forward. It must
/// be destroyed before its communicator, in flight or not.
class Operation {
 public:
  virtual ~Operation();
  Operation(const Operation&) = delete;
  Operation& operator=(const Operation&) = delete;

  /// Starts the operation: this rank's share is ready. Never blocks. All ranks start the same
  /// operations; the order may differ.
  void start();
  /// Returns whether the operation is complete; makes progress where no thread does, and serves
  /// other ranks (serves()). Never blocks; true when not in flight. Rethrows the operation's error,
  /// whichever thread met it, and again at every later call.
  bool test();
  /// Returns when the operation is complete, moving all others in flight forward too. Throws
  /// CommError when the communicator's time-out passes or a peer is found dead, and as test() does.
  void wait();
  /// Starts it and waits for it.
  void run() {
    start();
    wait();
  }
  /// Waits, but returns false when that many seconds have passed.
  bool wait_for(double seconds);

  /// Sets the priority. Operations of higher priority are moved forward first, and large
  /// operations of lower priority wait between their chunks meanwhile. Equal priorities: in the
  /// order of start(). Not while in flight.
  void set_priority(int priority) { priority_ = priority; }
  int priority() const { return priority_; }

  /// Removes the time-out of wait(), which fails only when a peer is dead or another rank gives up.
  void set_patient(bool patient) { patient_ = patient; }

  const std::string& name() const { return name_; }
  uint64_t sequence() const { return sequence_; }
  bool in_flight() const { return in_flight_; }
  /// Returns whether start(), test() or a wait has thrown: the operation stays in flight and is
  /// only to be destroyed.
  bool failed() const { return failed_; }
  /// Returns when the last run was found complete; steady clock. Only for the owner, after test()
  /// has returned true.
  std::chrono::steady_clock::time_point completed() const { return completed_; }
  Pending pending() const;

 protected:
  Operation(Communicator& communicator, std::string name);
  virtual void begin() = 0;    ///< publishes or sends; must not block. Called by the owner
  virtual bool advance() = 0;  ///< true when complete; must not block. One thread at a time
  virtual Pending describe() const = 0;  ///< never called while another thread is in advance()
  /// Returns whether the operation is in flight, but only listens: it need not be polled all the
  /// time. Called under the same conditions as describe().
  virtual bool idle() const { return false; }
  /// Returns whether the operation answers requests that other ranks make at any time: it then
  /// moves on whenever this rank tests anything.
  virtual bool serves() const { return false; }
  /// Must be called first in the destructor of every final class: afterwards no thread is, or will
  /// be, inside advance().
  void withdraw() noexcept;

  Communicator& communicator() const { return communicator_; }
  /// Moves `other`, an operation of this rank on which others wait, a step forward.
  void help(Operation& other) const;
  /// Returns the pacer, for an operation that runs in chunks.
  Pacer& pacer() const;

 private:
  template <class Work>
  void guarded(Work work);
  bool advance_guarded();
  bool look();
  void wait_until(const std::function<bool()>& done);

  Communicator& communicator_;
  std::string name_;
  uint64_t sequence_ = 0;
  int priority_ = 0;
  bool patient_ = false;
  std::atomic<bool> failed_ = false;  // set by the owner; in a service's wait by any thread
  bool in_flight_ = false;            // from the owner's point of view
  friend class Progress;
  bool advancing_ = false;  // a thread is inside advance(); guarded by the mutex of Progress
  std::atomic<bool> done_{true};
  std::chrono::steady_clock::time_point completed_{};  // written before done_, like error_
  std::exception_ptr error_;                           // thrown by advance()
};

}  // namespace tutti::comm
