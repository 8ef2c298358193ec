#pragma once
// TicketDesk: who makes which gradient. A ticket is a gradient's number in the order of the seed;
// in the end each is applied once. A round is a run of tickets between two meetings of all workers.
//
// Where gradients are applied one by one each ticket is given once, to the worker that is free
// first. Where a step takes the first so many gradients of its weights (backup workers: Chen et al.
// 2016, "Revisiting distributed synchronous SGD") the tickets of those that come too late are given
// again.

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <vector>

namespace tutti {

struct TicketRules {
  int workers = 1;
  int64_t together = 1;               ///< tickets of a step of the run, of which a round has whole
                                      ///< ones
  std::optional<int64_t> bound = {};  ///< how many gradients a worker may begin beyond those of the
                                      ///< slowest, counted from the round's beginning
  bool quorum = false;                ///< the gradients of a step are of the same weights and are
                                      ///< applied together; without a bound
};

/// Not thread-safe.
class TicketDesk {
 public:
  /// A worker has at most this many tickets whose gradients are not there yet: the one that it
  /// works on, and the one whose samples it reads meanwhile.
  static constexpr int64_t kAhead = 2;

  /// A gradient that is there.
  struct Arrival {
    int64_t ticket = 0;
    bool taken = true;  ///< otherwise it came too late
  };

  static std::unique_ptr<TicketDesk> make(const TicketRules& rules);
  virtual ~TicketDesk() = default;

  /// A round of the tickets [first, end); all that were given before have been applied. All workers
  /// have the weights.
  void open(int64_t first, int64_t end);
  /// The next ticket, if this worker may have one now.
  virtual std::optional<int64_t> next_for(int worker) = 0;
  /// The gradient of this worker's first ticket is there.
  virtual Arrival arrived(int worker) = 0;
  /// This worker gets the weights of the step that is under way now.
  virtual void served(int) {}
  /// Whether the round has no more tickets for anybody.
  virtual bool empty() const { return next_ == end_; }
  /// The round ends with the step that has begun.
  void close();
  int64_t end() const { return end_; }

 protected:
  explicit TicketDesk(const TicketRules& rules) : rules_(rules) {}
  virtual void begin_round() = 0;

  const TicketRules rules_;
  int64_t next_ = 0, end_ = 0;
};

/// Gradients are applied one by one.
class OneByOneDesk final : public TicketDesk {
 public:
  explicit OneByOneDesk(const TicketRules& rules);

  std::optional<int64_t> next_for(int worker) override;
  Arrival arrived(int worker) override;
  /// Of this round.
  int64_t given(int worker) const { return workers_[static_cast<size_t>(worker)].given; }

 private:
  struct Worker {
    int64_t given = 0, arrived = 0;
    std::deque<int64_t> held;
  };
  void begin_round() override;
  int64_t slowest() const;  // gradients of the worker of whom fewest are there

  std::vector<Worker> workers_;
};

/// A step takes the first gradients of its weights.
class QuorumDesk final : public TicketDesk {
 public:
  explicit QuorumDesk(const TicketRules& rules);

  std::optional<int64_t> next_for(int worker) override;
  Arrival arrived(int worker) override;
  void served(int worker) override { workers_[static_cast<size_t>(worker)].makes = true; }
  bool empty() const override { return next_ == end_ && open_.empty(); }

 private:
  struct Worker {
    std::deque<int64_t> held;
    bool makes = false;     // it has weights, and its gradient is not there
    bool late = false;      // of older weights than the step's: its ticket has been taken back
    bool waits = false;     // its gradient is part of the step under way
    bool was_late = false;  // with its last gradient, in this round or the one before
  };
  void begin_round() override;
  void end_step();

  std::vector<Worker> workers_;
  std::map<int64_t, int> open_;  // tickets that were given and are in no step, and how many workers
                                 // hold each
  int64_t taken_ = 0;            // gradients of the step under way
};

}  // namespace tutti
