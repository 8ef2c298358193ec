#pragma once
// Operation: something that ranks do together, planned once and started as often as wanted. Never
// blocks but in wait().

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

/// What an unfinished operation waits for, as far as this rank knows; becomes the message of the
/// CommError. A rank in neither list is one of which nothing is known here.
struct Pending {
  std::string operation;     ///< "reduction 'bucket 3'"
  uint64_t sequence = 0;     ///< how often the operation was started, this time included
  std::vector<int> arrived;  ///< ranks whose share is here
  std::vector<int> missing;  ///< ranks whose share this rank waits for
  size_t passed = 0;         ///< rounds, or messages, of this start that are done
  bool operator==(const Pending&) const = default;
};

/// For its owner not thread-safe: a communicator and all its operations belong to one thread at a
/// time. From start() to completion the threads of comm/run/progress.h may move it forward
/// meanwhile. Destroyed before its communicator, in flight or not.
class Operation {
 public:
  virtual ~Operation();
  Operation(const Operation&) = delete;
  Operation& operator=(const Operation&) = delete;

  /// My share is ready. Never blocks. All ranks start the same operations; the order may differ.
  void start();
  /// Whether the operation is complete; makes progress where no thread does, and serves other ranks
  /// (serves()). Never blocks; true when not in flight. Rethrows what went wrong in the operation,
  /// whoever moved it forward, and again at every later call.
  bool test();
  /// Returns when the operation is complete, moving every other operation in flight forward too.
  /// Throws CommError when the communicator's time-out passes or a peer is found dead, and as
  /// test() does.
  void wait();
  /// The same, but returns false when so many seconds have passed.
  bool wait_for(double seconds);

  /// Whoever has the higher priority is moved forward first, and large operations of lower priority
  /// wait between their chunks meanwhile. Equal priorities: in the order of start(). Not while in
  /// flight.
  void set_priority(int priority) { priority_ = priority; }
  int priority() const { return priority_; }

  /// wait() has no time-out: it fails only when a peer is found dead or another rank gives up.
  void set_patient(bool patient) { patient_ = patient; }

  const std::string& name() const { return name_; }
  uint64_t sequence() const { return sequence_; }
  bool in_flight() const { return in_flight_; }
  /// start(), test() or a wait has thrown: it stays in flight and is only to be destroyed.
  bool failed() const { return failed_; }
  /// When whoever moved it forward found the last run complete; steady clock. Of the owner, after
  /// test() has said so.
  std::chrono::steady_clock::time_point completed() const { return completed_; }
  Pending pending() const;

 protected:
  Operation(Communicator& communicator, std::string name);
  virtual void begin() = 0;    ///< publish or send; must not block. By the owner
  virtual bool advance() = 0;  ///< true when complete; must not block. By any thread, one at a time
  virtual Pending describe() const = 0;  ///< never while another thread is in advance()
  /// In flight, but only listening: it need not be looked at all the time. Called as describe().
  virtual bool idle() const { return false; }
  /// Does what other ranks ask for at any time: it is moved on whenever this rank tests anything.
  virtual bool serves() const { return false; }
  /// The first thing that the destructor of every final class does: afterwards nobody is, or will
  /// be, inside advance().
  void withdraw() noexcept;

  Communicator& communicator() const { return communicator_; }
  /// For an operation that others wait for, too: moves `other`, of this rank, a step forward.
  void help(Operation& other) const;
  /// For an operation that runs in chunks.
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
  std::atomic<bool> failed_ = false;  // of the owner; of a service's wait any thread may find it
  bool in_flight_ = false;            // as the owner knows
  friend class Progress;
  bool advancing_ = false;  // a thread is inside advance(); guarded by the mutex of Progress
  std::atomic<bool> done_{true};
  std::chrono::steady_clock::time_point completed_{};  // written before done_, as is
  std::exception_ptr error_;                           // of advance()
};

}  // namespace tutti::comm
