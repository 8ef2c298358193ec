#pragma once
// TicketDesk: who makes which gradient. A ticket is a gradient's number in the order of the seed;
// each is given once, to the worker that is free first. A round is a run of tickets between two
// meetings of all workers.

#include <cstdint>
#include <optional>
#include <vector>

namespace tutti {

/// Not thread-safe.
class TicketDesk {
 public:
  /// A worker has at most this many tickets whose gradients are not applied: the one that it works
  /// on, and the one whose samples it reads meanwhile.
  static constexpr int64_t kAhead = 2;

  /// `together`: tickets of a step of the run, of which a round has whole ones. `bound`: how many
  /// gradients a worker may begin beyond those of the slowest, counted from the round's beginning.
  TicketDesk(int workers, int64_t together, std::optional<int64_t> bound)
      : together_(together), bound_(bound), given_(static_cast<size_t>(workers)),
        applied_(static_cast<size_t>(workers)) {}

  /// A round of the tickets [first, end); all that were given before have been applied.
  void open(int64_t first, int64_t end);
  /// The next ticket, if this worker may have one now.
  std::optional<int64_t> next_for(int worker);
  /// A gradient of this worker has been applied.
  void applied(int worker) { ++applied_[static_cast<size_t>(worker)]; }
  /// The round ends with the step that has begun.
  void close();
  /// Whether the round has no more tickets.
  bool empty() const { return next_ == end_; }
  int64_t end() const { return end_; }
  /// Of this round.
  int64_t given(int worker) const { return given_[static_cast<size_t>(worker)]; }
  int64_t slowest() const;  ///< gradients of the worker of whom fewest have been applied

 private:
  const int64_t together_;
  const std::optional<int64_t> bound_;
  int64_t next_ = 0, end_ = 0;
  std::vector<int64_t> given_, applied_;
};

}  // namespace tutti
