#pragma once
// BatchDealer: assigns gradients to workers. A ticket is a gradient's number in the order of the
// seed; in the end each is applied once. A round is a range of tickets between two meetings of all
// workers.
//
// Where gradients are applied one by one, each ticket is given once, to the worker that is free
// first. Where a step takes the first gradients of its weights (backup workers: Chen et al. 2016,
// "Revisiting distributed synchronous SGD"), the tickets of gradients that come too late are given
// again.

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <vector>

namespace tutti::sync {

struct TicketRules {
  int workers = 1;
  int64_t together = 1;               ///< tickets per step of the run; a round has whole steps
  std::optional<int64_t> bound = {};  ///< how many more gradients a worker may begin than the
                                      ///< slowest has finished, counted from the round's beginning
  bool quorum = false;                ///< a step's gradients use the same weights and are applied
                                      ///< together; without a bound
};

/// Not thread-safe.
class BatchDealer {
 public:
  /// The most tickets that a worker may have whose gradients have not arrived: the one that it
  /// computes, and the one whose samples it reads meanwhile.
  static constexpr int64_t kAhead = 2;

  /// A gradient that has arrived.
  struct Arrival {
    int64_t ticket = 0;
    bool taken = true;  ///< otherwise it came too late
  };

  static std::unique_ptr<BatchDealer> make(const TicketRules& rules);
  virtual ~BatchDealer() = default;

  /// Begins a round of the tickets [first, end); all earlier tickets have been applied. All workers
  /// have the weights.
  void open(int64_t first, int64_t end);
  /// Returns the next ticket, if this worker may have one now.
  virtual std::optional<int64_t> next_for(int worker) = 0;
  /// Records that the gradient of this worker's first ticket has arrived.
  virtual Arrival arrived(int worker) = 0;
  /// Records that this worker now gets the weights of the current step.
  virtual void served(int) {}
  /// Returns whether the round has no more tickets for any worker.
  virtual bool empty() const { return next_ == end_; }
  /// Ends the round with the current step.
  void close();
  int64_t end() const { return end_; }

 protected:
  explicit BatchDealer(const TicketRules& rules) : rules_(rules) {}
  virtual void begin_round() = 0;

  const TicketRules rules_;
  int64_t next_ = 0, end_ = 0;
};

/// The rules for gradients that are applied one by one.
class OneByOneDealer final : public BatchDealer {
 public:
  explicit OneByOneDealer(const TicketRules& rules);

  std::optional<int64_t> next_for(int worker) override;
  Arrival arrived(int worker) override;
  /// Tickets given in this round.
  int64_t given(int worker) const { return workers_[static_cast<size_t>(worker)].given; }

 private:
  struct Worker {
    int64_t given = 0, arrived = 0;
    std::deque<int64_t> held;
  };
  void begin_round() override;
  int64_t slowest() const;  // number of arrived gradients of the worker with the fewest

  std::vector<Worker> workers_;
};

/// The rules for steps that take the first gradients of their weights.
class QuorumDealer final : public BatchDealer {
 public:
  explicit QuorumDealer(const TicketRules& rules);

  std::optional<int64_t> next_for(int worker) override;
  Arrival arrived(int worker) override;
  void served(int worker) override { workers_[static_cast<size_t>(worker)].makes = true; }
  bool empty() const override { return next_ == end_ && open_.empty(); }

 private:
  struct Worker {
    std::deque<int64_t> held;
    bool makes = false;     // it has weights, and its gradient has not arrived
    bool late = false;      // its weights are older than the step's: its ticket was taken back
    bool waits = false;     // its gradient is part of the current step
    bool was_late = false;  // its last gradient was late, in this round or the one before
  };
  void begin_round() override;
  void end_step();

  std::vector<Worker> workers_;
  std::map<int64_t, int> open_;  // tickets that were given and are in no step, with the number of
                                 // workers holding each
  int64_t taken_ = 0;            // gradients of the current step
};

}  // namespace tutti::sync
