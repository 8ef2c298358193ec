#pragma once
// VirtualClock: computes when the replicas of a run would have acted on a machine that is only
// described. Times decide nothing here: the arithmetic is that of any run, and the clock follows
// it, the same on every rank.

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "tutti/comm/cost/machine.h"
#include "tutti/exchange/bucket.h"
#include "tutti/sync/meeting.h"

namespace tutti::sync {

/// The fraction of a step that is forward: backward takes twice as long.
inline constexpr double kForward = 1.0 / 3;

struct VirtualClockSpec {
  comm::Machine machine;
  int replicas = 1;  ///< each on a device
  uint64_t seed = 0;
  double flop = 0;                             ///< operations in a replica's step
  std::vector<exchange::Bucket> buckets = {};  ///< the gradient's, in the order of backward
  double state_bytes = 0;                      ///< optimizer state that a meeting averages
  std::optional<MeetingSettings> sync{};       ///< none: every step
};

/// Not thread-safe.
class VirtualClock {
 public:
  explicit VirtualClock(VirtualClockSpec spec);

  /// Simulates the next step of all replicas, and the meeting after it if one is due. Returns the
  /// mean seconds that a replica waited for others and for messages. `measured` gives the seconds
  /// that each replica has computed here, for a machine that is to take as long.
  double step(int64_t step, std::span<const double> measured = {});
  bool measures() const { return spec_.machine.measured; }
  /// Returns the seconds until the last replica was ready for the next step.
  double seconds() const;
  /// Lets all replicas continue together at this time, where a run becomes a replay.
  void resume(double seconds);
  /// Returns each replica's ready time and the messages in flight, as numbers for a checkpoint.
  /// restore() takes them back; it returns false and changes nothing if they belong to another
  /// number of replicas.
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
  std::vector<double> ready_;  // ready time of each replica
  double average_there_ = 0;   // sync.delay: when the last average has arrived
  struct Sent {
    int to;
    double arrives;
  };
  std::vector<Sent> sent_;  // gossip: messages in flight
  std::optional<CenterTree> tree_;
};

}  // namespace tutti::sync
