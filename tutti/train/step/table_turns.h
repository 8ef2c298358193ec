#pragma once
// TableTurns: what the update of tables reads of all turns of a step (TrainingGraph::kept). One
// turn is read where it lies; of several each is copied to its place when it is over.

#include <vector>

#include "tutti/device/cpu/buffer.h"
#include "tutti/exchange/replicas.h"
#include "tutti/plan/executor.h"
#include "tutti/train/network/network.h"

namespace tutti {

/// Not thread-safe.
class TableTurns {
 public:
  /// Network, turns and executor must outlive it. ConfigError where ranks that share tables have
  /// different numbers of turns.
  TableTurns(const Network& network, const ReplicaMap& turns, Executor& executor);

  /// After the run of a local turn, whose inputs are bound.
  void take(int local_turn);
  size_t memory_bytes() const;

 private:
  const Network& network_;
  const ReplicaMap& turns_;
  Executor& executor_;
  std::vector<Buffer> kept_;  // by network_.kept
};

}  // namespace tutti
