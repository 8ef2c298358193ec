#pragma once
// Job: the state shared by the objects of one environment: the world, the settings, and the
// order of the operations that a program has started.

#include "tutti/comm/communicator.h"
#include "tutti/mlsl/settings.h"

namespace tutti::mlsl {

/// Not thread-safe. Outlives every operation of the environment. All of these belong to the
/// progress of the world (comm/run/progress.h): a rank that waits for any of them progresses every
/// one.
class Job {
 public:
  /// `world` outlives the job.
  Job(comm::Communicator& world, Settings settings)
      : world_(world), settings_(std::move(settings)) {}

  comm::Communicator& world() { return world_; }
  const Settings& settings() const { return settings_; }

  /// Starts an operation of that many bytes, with the priority that follows from the size, and
  /// progresses operations in flight. Never blocks.
  void start(comm::Operation& operation, size_t bytes);
  /// Whether the operation is complete, for a program's own query; also progresses all others in
  /// flight.
  bool test(comm::Operation& operation);

 private:
  int next_priority(size_t bytes);

  comm::Communicator& world_;
  Settings settings_;
  int started_ = 0;
};

}  // namespace tutti::mlsl
