#pragma once
// ServerClock: the order in which gradients reach the servers that hold the weights, on a machine
// that is only described. Unlike the times of sync/virtual_clock.h, this order determines the
// weights with which a gradient is computed: it affects a run's results, and so is part of its
// checkpoints.
//
// A worker takes the weights, computes, and sends the gradient's buckets as backward makes them,
// each to the server that holds these weights. A bucket above a server's share is split evenly over
// all of them. The gradient is complete when its last bucket has arrived. The scheme decides how it
// is applied; finally the servers send weights, and the worker begins anew when it has all of them.
// As on real ranks (sync/batch_dealer.h) a worker makes a gradient for which it has a ticket, and
// takes the next one beforehand. When all tickets of a round are given and their gradients applied,
// all workers meet, and begin together with the servers' weights. A message occupies the sender's
// link and the receiver's for as long as its bytes take, first come, first served. Each server is
// on a node of its own; their nodes are numbered after the workers'.

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "tutti/comm/cost/machine.h"
#include "tutti/exchange/bucket.h"
#include "tutti/sync/served_parts.h"

namespace tutti::sync {

struct ServerClockSpec {
  comm::Machine machine;
  int workers = 1;
  int group = 1;  ///< devices of a worker, which sum their gradients and share the weights received
  uint64_t seed = 0;
  double flop = 0;                             ///< operations in a device's step
  std::vector<exchange::Bucket> buckets = {};  ///< the gradient's, in the order of backward
  int servers = 1;
  std::optional<int64_t> bound = {};  ///< how many steps a worker may be ahead of the slowest,
                                      ///< counted from the last meeting; none: any number
  int64_t round = 0;                  ///< gradients between two meetings; 0: there are none
  double state_bytes = 0;             ///< optimizer state, which workers also take at a meeting
  int quorum = 0;  ///< 0: each gradient is applied as soon as it arrives. Otherwise the servers
                   ///< wait for that many gradients of their current weights, and drop those of
                   ///< older weights
};

/// A gradient that has reached the servers.
struct ArrivedGradient {
  int worker = 0;
  int64_t read = 0;           ///< version of the weights it was computed with
  int64_t version = 0;        ///< version of the servers' weights, before it is applied
  bool dropped = false;       ///< computed with older weights than a quorum accepts
  bool updates = true;        ///< the servers' weights now have the next version
  std::vector<int> served{};  ///< workers that then take the servers' weights; at a meeting all
};

/// Not thread-safe.
class ServerClock {
 public:
  /// All workers begin with version 0 at 0 s.
  explicit ServerClock(ServerClockSpec spec);

  /// Returns the next gradient to arrive.
  ArrivedGradient next();
  /// Returns the time of the last gradient, including the meeting after it.
  double seconds() const { return now_; }
  int workers() const { return spec_.workers; }
  /// Returns the version of the servers' weights.
  int64_t version() const { return version_; }
  /// Returns how many gradients of this worker have been returned by next() since the last meeting,
  /// not counting dropped ones.
  int64_t steps(int worker) const { return workers_[static_cast<size_t>(worker)].steps; }
  /// Returns the version of the weights that a worker has taken last.
  int64_t version(int worker) const { return workers_[static_cast<size_t>(worker)].version; }
  /// Returns whether its gradient has arrived and it has no weights yet for the next one.
  bool waits(int worker) const { return workers_[static_cast<size_t>(worker)].waits; }
  /// Returns the mean seconds that a device spent between its steps since the last call: waiting
  /// for others, for messages, for servers.
  double take_waited();
  ServedCounts take_counts();

  /// Returns all of the above that is needed to continue, as numbers, except the results of the two
  /// take_ functions.
  std::vector<double> state() const;
  /// Restores state(). Returns false, and does nothing, for numbers that belong to another
  /// specification.
  bool restore(std::span<const double> state);
  /// Starts without such numbers: all begin with this version at this time. `left` is the number of
  /// gradients until they meet; 0: a whole round.
  void begin(double seconds, int64_t version, int64_t left = 0);

 private:
  struct Worker {
    double began = 0;
    int64_t steps = 0;                                   // gradients counted since the last meeting
    int64_t tickets = 0;                                 // tickets whose gradients are not applied
    int64_t begun = 0;                                   // gradients begun, including dropped ones
    size_t sent = 0;                                     // buckets sent
    double arrived = 0;                                  // arrival time of the last of them
    int64_t version = 0;                                 // version of its weights
    bool waits = false;                                  // waits for the servers
    std::vector<double> made = {};                       // bucket times, found from `began`
    double computed = 0;                                 // devices' mean, found from `began`
    bool idle() const { return waits && tickets == 0; }  // until the next meeting
  };
  struct Link {
    double out = 0, in = 0;  // time until which it is busy
  };
  struct Part {
    int server;
    double bytes;
  };
  void deal_buckets();
  void start(Worker& worker, double seconds);
  void find_times(Worker& worker) const;
  void send_bucket(Worker& worker);
  void take_tickets(Worker& worker, int64_t most);
  void serve(int worker);
  void serve_waiting(std::vector<int>& served);
  void meet();
  void count(const ArrivedGradient& arrived);
  double transfer(double& out, double& in, double seconds, double bytes, int from, int to);
  int device(const Worker& worker) const;
  int server_device(int server) const;
  int64_t slowest() const;

  const ServerClockSpec spec_;
  std::vector<double> part_bytes_;        // bytes of the weights, by server
  std::vector<std::vector<Part>> parts_;  // by bucket
  double weight_bytes_ = 0;
  std::vector<Worker> workers_;
  std::vector<Link> nodes_, servers_;
  double now_ = 0, waited_ = 0;
  ServedCounts counts_;
  int64_t version_ = 0;
  int64_t tickets_ = 0;  // remaining in the round
  int taken_ = 0;        // gradients of the current quorum
};

}  // namespace tutti::sync
