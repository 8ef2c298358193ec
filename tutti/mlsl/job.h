#pragma once
// Job: what the objects of one environment share: the world, the settings, and which of the
// operations that a program has started goes first.

#include "tutti/comm/communicator.h"
#include "tutti/mlsl/settings.h"

namespace tutti::mlsl {

/// Not thread-safe. Outlives every operation of the environment. These are all in the progress of
/// the world (comm/run/progress.h): whoever waits, for whatever it is, moves every one of them.
class Job {
 public:
  /// `world` outlives the job.
  Job(comm::Communicator& world, Settings settings)
      : world_(world), settings_(std::move(settings)) {}

  comm::Communicator& world() { return world_; }
  const Settings& settings() const { return settings_; }

  /// Starts an operation of so many bytes, with the priority that follows from these, and moves on
  /// what is in flight. Never blocks.
  void start(comm::Operation& operation, size_t bytes);
  /// Whether it is complete; moves whatever else is in flight forward too: for a program's own
  /// question.
  bool test(comm::Operation& operation);

 private:
  int next_priority(size_t bytes);

  comm::Communicator& world_;
  Settings settings_;
  int started_ = 0;
};

}  // namespace tutti::mlsl
