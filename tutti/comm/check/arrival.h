#pragma once
// ArrivalRecord: finds late ranks, measured before a collective makes all ranks equally late. Each
// rank notes when it starts each operation; every few steps the notes of all ranks are compared on
// one clock.
//
//   arrival   time at which a rank starts an operation
//   lateness  for an operation: a rank's arrival minus the earliest rank's; for a step: the largest
//             over the step's operations
//   last      the rank with the largest lateness of a step
//   waited    time that a rank spends in waits for the operations; for late ranks: the part before
//             the last rank had started the operation. The rest is communication that no
//             computation hid.
//
// The clock is CLOCK_MONOTONIC, which all processes of a node share. Between nodes its offset to
// rank 0's is found at every collect(): rank 0 reads its clock between two collectives, so its
// reading lies between the readings of every other rank before the first and after the second. A
// few such intervals are intersected; half of the remaining one is the error that the summary
// states (Cristian 1989, by collectives instead of one rank after another).

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

#include "tutti/comm/communicator.h"

namespace tutti::comm {

/// One rank's results over the compared steps, in seconds. Sent as it lies in memory.
struct Lateness {
  int32_t rank = 0;
  int32_t last = 0;  ///< steps in which it was the last
  double median = 0, worst = 0;
  double waited = 0, waited_for_late = 0;  ///< mean seconds in each step
};
static_assert(sizeof(Lateness) == 2 * sizeof(int32_t) + 4 * sizeof(double), "no padding");

struct ArrivalSummary {
  int64_t steps = 0;        ///< steps compared
  double step_seconds = 0;  ///< mean over them, on this rank
  double clock_error = 0;   ///< seconds; 0 when all ranks are on one node
  /// The kLatest ranks that were last most often, sorted by how often.
  std::vector<Lateness> ranks;
  static constexpr size_t kLatest = 8;
  double waited = 0, waited_for_late = 0;  ///< means over all ranks of Lateness::waited, ...
  /// Returns the rank that is late persistently: last in two steps of three (of at least 4), by a
  /// median of at least 5 % of a step and of twice the clocks' error.
  const Lateness* straggler() const;
};

/// Formats "rank 3 on n07 arrived last in 87 of 100 steps, by 12.3 ms in the median (9 % of a step;
/// clocks agree to 0.02 ms)".
std::string to_string(const Lateness& late, const ArrivalSummary& summary,
                      const Communicator& communicator);

/// Not thread-safe; belongs to the communicator's thread.
class ArrivalRecord {
 public:
  /// A step consists of `operations` operations, each started once; up to `steps` steps are kept
  /// between two collect(). The communicator outlives the record. With a single rank nothing is
  /// kept. Collective.
  ArrivalRecord(Communicator& communicator, int operations, int steps);

  using Clock = std::chrono::steady_clock;  // CLOCK_MONOTONIC

  /// Notes that this rank starts `operation` now. Costs one clock reading and a store.
  void note(int operation);
  /// Notes that it waited from `begin` until now for the `operation` that it started last.
  void waited(int operation, Clock::time_point begin);
  /// Compares the steps since the last call, and forgets them. Collective and blocking, off the hot
  /// path: two allreduces of the arrivals, one of a value for each step, and a few that combine
  /// data of fixed size.
  ArrivalSummary collect();

 private:
  int64_t complete_steps();
  void compare_arrivals(size_t steps);
  Lateness compare_waits(size_t steps);
  void find_offset();

  Communicator& communicator_;
  size_t operations_, capacity_;
  std::vector<size_t> noted_;                    // steps by operation
  std::vector<double> arrivals_;                 // [step][operation], on this rank's clock
  std::vector<double> wait_begins_, wait_ends_;  // likewise; 0 without a wait
  std::vector<double> earliest_, latest_,
      lateness_;  // over ranks: arrivals, and the steps' lateness
  std::unique_ptr<CollectiveOperation> find_earliest_, find_latest_, find_lateness_;
  double offset_ = 0, error_ = 0;  // rank 0's clock minus this rank's
};

}  // namespace tutti::comm
