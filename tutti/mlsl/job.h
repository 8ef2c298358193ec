#pragma once
// Job: what the objects of one environment share: the world, the settings, and the exchanges in
// flight.

#include <vector>

#include "tutti/comm/communicator.h"
#include "tutti/mlsl/settings.h"

namespace tutti::mlsl {

class Exchange;

/// Not thread-safe. Outlives every exchange.
class Job {
 public:
  /// `world` outlives the job.
  Job(comm::Communicator& world, Settings settings)
      : world_(world), settings_(std::move(settings)) {}

  comm::Communicator& world() { return world_; }
  const Settings& settings() const { return settings_; }

  /// Moves every exchange in flight forward, the most urgent first. Never blocks.
  void progress();
  /// Completes everything in flight. Needed before anything that blocks in one group: there comm
  /// moves its own operations, but not on to the next stage of an exchange that has several, while
  /// a rank that is still expected there may be waiting for this one in another group.
  void settle();

 private:
  friend class Exchange;
  /// The priority of an exchange of so many bytes that starts now.
  int next_priority(size_t bytes);
  void enter(Exchange& exchange);
  void leave(Exchange& exchange);

  comm::Communicator& world_;
  Settings settings_;
  std::vector<Exchange*> in_flight_;  // by falling priority
  int started_ = 0;
};

}  // namespace tutti::mlsl
