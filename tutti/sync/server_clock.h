#pragma once
// ServerClock: the order in which gradients reach the servers that hold the weights, on a machine
// that is described and not at hand. Unlike the times of sync/virtual_clock.h, this order decides
// which weights a gradient is taken of: it is part of what a run learns, and so of its checkpoints.
//
// A worker takes the weights, computes, and sends the gradient's buckets as backward makes them,
// each to the server that holds these weights. One that is more than a server's share is cut evenly
// over all of them. When the last one has arrived the gradient is there.
// What becomes of it then is the scheme; in the end the servers send weights, and the worker begins
// anew when it has all of them. As on real ranks (sync/ticket_desk.h) a worker makes a gradient
// for which it has a ticket, and takes the next one beforehand; where all tickets of a round have
// been given and their gradients applied, all workers meet, and begin together with the servers'
// weights. A message occupies the sender's link and the receiver's for as long
// as its bytes take, first come, first served. Each server is on a node of its own, behind those of
// the workers.

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "tutti/comm/cost/machine.h"
#include "tutti/exchange/bucket.h"

namespace tutti {

struct ServerClockSpec {
  comm::Machine machine;
  int workers = 1;
  int group = 1;  ///< devices of a worker, which sum their gradients and share what comes back
  uint64_t seed = 0;
  double flop = 0;                   ///< of a device's step
  std::vector<Bucket> buckets = {};  ///< of the gradient, in the order of backward
  int servers = 1;
  std::optional<int64_t> bound = {};  ///< how many steps a worker may be ahead of the slowest,
                                      ///< counted from the last meeting; none: any number
  int64_t round = 0;                  ///< gradients between two meetings; 0: there are none
  double state_bytes = 0;             ///< of the optimizer, which workers take there, too
  int quorum = 0;  ///< 0: each gradient is applied when it is there. Otherwise the servers wait for
                   ///< so many of the weights that they have; one of older weights is dropped
};

/// A gradient that has reached the servers.
struct ArrivedGradient {
  int worker = 0;
  int64_t read = 0;         ///< the version of the weights that it is of
  int64_t version = 0;      ///< of the servers' weights, before it is applied
  bool dropped = false;     ///< of older weights than a quorum takes
  bool updates = true;      ///< the servers' weights have the next version now
  std::vector<int> served;  ///< the workers who then take the servers' weights, as they are; at a
                            ///< meeting all
};

/// What has happened since the last look.
struct ServerCounts {
  int64_t updates = 0, dropped = 0;
  double bytes = 0;                     ///< that workers and servers have sent
  std::vector<int64_t> staleness = {};  ///< [n]: gradients that came n updates after their weights
  int64_t spread = 0;  ///< at most: versions from the oldest weights of a worker to the servers'

  double stale_mean() const;  ///< NaN of none
};

/// Not thread-safe.
class ServerClock {
 public:
  /// All workers begin with version 0 at 0 s.
  explicit ServerClock(ServerClockSpec spec);

  /// The next gradient.
  ArrivedGradient next();
  /// Of the last one, and the meeting after it.
  double seconds() const { return now_; }
  int workers() const { return spec_.workers; }
  /// Of the servers' weights.
  int64_t version() const { return version_; }
  /// Whose gradients have been next() so often since the last meeting, without those that were
  /// dropped.
  int64_t steps(int worker) const { return workers_[static_cast<size_t>(worker)].steps; }
  /// The version of the weights that a worker has taken last.
  int64_t version(int worker) const { return workers_[static_cast<size_t>(worker)].version; }
  /// Whether it has brought its gradient and has no weights yet for the next one.
  bool waits(int worker) const { return workers_[static_cast<size_t>(worker)].waits; }
  /// Mean seconds that a device spent between its steps since the last call: waiting for others,
  /// for messages, for servers.
  double take_waited();
  ServerCounts take_counts();

  /// All of the above that is needed to go on, as numbers; without what the two takes return.
  std::vector<double> state() const;
  /// The reverse. Returns false, and does nothing, for numbers that are of another specification.
  bool restore(std::span<const double> state);
  /// Without such numbers: all begin with this version at this time. `left`: gradients until they
  /// meet; 0: a whole round.
  void begin(double seconds, int64_t version, int64_t left = 0);

 private:
  struct Worker {
    double began = 0;
    int64_t steps = 0;                                   // taken part in since the last meeting
    int64_t tickets = 0;                                 // whose gradients are not applied
    int64_t begun = 0;                                   // dropped ones among them
    size_t sent = 0;                                     // buckets
    double arrived = 0;                                  // the last of them
    int64_t version = 0;                                 // that it has
    bool waits = false;                                  // for the servers
    std::vector<double> made = {};                       // when each bucket was; of `began`
    double computed = 0;                                 // mean over its devices; of `began`
    bool idle() const { return waits && tickets == 0; }  // until the next meeting
  };
  struct Link {
    double out = 0, in = 0;  // busy until then
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
  std::vector<double> part_bytes_;        // of the weights, by server
  std::vector<std::vector<Part>> parts_;  // by bucket
  double weight_bytes_ = 0;
  std::vector<Worker> workers_;
  std::vector<Link> nodes_, servers_;
  double now_ = 0, waited_ = 0;
  ServerCounts counts_;
  int64_t version_ = 0;
  int64_t tickets_ = 0;  // left of the round
  int taken_ = 0;        // of the quorum
};

}  // namespace tutti
