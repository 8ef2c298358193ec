#pragma once
// Machine: a machine that need not be at hand, as a few numbers: how fast its devices train, and
// the costs of its network. The clock of a replay uses it (sync/virtual_clock.h); docs/replay.md
// describes its file.

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "tutti/comm/cost/cost.h"

namespace tutti::comm {

/// Devices are numbered node by node.
struct Machine {
  std::string name;
  uint64_t content = 0;  ///< a hash of its description, which distinguishes two of one name
  int devices_per_node = 1;
  double device_flops = 0;  ///< FLOP/s that a device reaches in training; 0: step_seconds is given
  double step_seconds = 0;  ///< seconds of a replica's gradient; 0: from device_flops
  bool measured = false;    ///< a step takes the time measured here, instead of both
  LinkCost inside;          ///< each device's link to others of its node
  LinkCost between;         ///< each node's link to other nodes
  /// Nodes below one switch, and how many times faster their links together are than the switch's
  /// own link to the others: 1 where every node has its full rate to every other.
  int nodes_per_switch = 0;  ///< 0: all
  double oversubscription = 1;
  double sigma = 0;  ///< standard deviation of the logarithm of a step's time, whose mean stays
  struct Slow {
    int device;
    double factor;  ///< multiplies its times
  };
  std::vector<Slow> slow;

  /// Returns "fat tree (7f3a9c01)": the name, and the hash that tells it from others of that name.
  std::string label() const;
  int node(int device) const { return device / devices_per_node; }
  /// Returns the seconds of a step of `flop` on a device: step `step` with this seed.
  /// `measured_seconds`: its time here, where steps are measured.
  double compute_seconds(double flop, int device, int64_t step, uint64_t seed,
                         double measured_seconds = 0) const;
  /// Returns the seconds of a message, while the sender's link carries `flows` such messages: its
  /// node's link to other nodes, or the device's own inside.
  double message_seconds(double bytes, int from, int to, int flows = 1) const;
  /// Returns the seconds of an allreduce over devices 0 .. devices - 1 that begin together: inside
  /// nodes by reduce-scatter and allgather, between nodes by halving and doubling (Thakur et al.
  /// 2005): 2 log2 n latencies and 2 (n - 1) / n of the bytes, at the rate of the slowest level.
  double allreduce_seconds(double bytes, int devices) const;

 private:
  LinkCost between_cost(bool crosses_switches) const;
};

}  // namespace tutti::comm
