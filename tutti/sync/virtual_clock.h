#pragma once
// VirtualClock: when the replicas of a run would have done what they do, on a machine that is
// described and not at hand. Times decide nothing here: the arithmetic is done as ever, and the
// clock follows it, the same on every rank.

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "tutti/comm/cost/machine.h"
#include "tutti/exchange/bucket.h"
#include "tutti/sync/meeting.h"

namespace tutti {

/// Which part of a step is forward: backward takes twice as long.
inline constexpr double kForward = 1.0 / 3;

struct VirtualClockSpec {
  comm::Machine machine;
  int replicas = 1;  ///< each on a device
  uint64_t seed = 0;
  double flop = 0;                        ///< of a replica's step
  std::vector<Bucket> buckets = {};       ///< of the gradient, in the order of backward
  double state_bytes = 0;                 ///< of the optimizer's state that a meeting averages
  std::optional<MeetingSettings> sync{};  ///< none: every step
};

/// Not thread-safe.
class VirtualClock {
 public:
  explicit VirtualClock(VirtualClockSpec spec);

  /// The next step of all replicas, and their meeting after it where it is one. Returns the mean
  /// seconds in which a replica waited for others and for messages. `measured`: seconds that each
  /// replica has computed here, where the machine is to take as long.
  double step(int64_t step, std::span<const double> measured = {});
  bool measures() const { return spec_.machine.measured; }
  /// Seconds until the last replica was ready for the next step.
  double seconds() const;
  /// All replicas go on at this time together: where a run begins to be a replay.
  void resume(double seconds);
  /// When each replica is ready and what is under way, as numbers for a checkpoint; and back.
  /// False, and nothing has changed, where they are of another number of replicas.
  std::vector<double> state() const;
  bool restore(std::span<const double> state);

 private:
  double gradient_end(const std::vector<double>& computed, double begin) const;
  void meet_all(double seconds);
  void meet_late(double seconds);
  void meet_neighbours(int64_t meeting, const std::vector<double>& began);
  void meet_in_tree(int64_t step);
  void gossip(int64_t step);

  const VirtualClockSpec spec_;
  double weight_bytes_ = 0;
  std::vector<double> ready_;  // of each replica
  double average_there_ = 0;   // sync.delay: when the last average has arrived
  struct Sent {
    int to;
    double arrives;
  };
  std::vector<Sent> sent_;  // gossip: under way
  std::optional<CenterTree> tree_;
};

}  // namespace tutti
