#pragma once
// TableMicroBatches: the values from all micro-batches of a step that the update of tables reads
// (TrainingGraph::kept). A single micro-batch is read in place; with several, each one's values are
// copied when it is done.

#include <vector>

#include "tutti/device/cpu/buffer.h"
#include "tutti/exchange/replicas.h"
#include "tutti/plan/executor.h"
#include "tutti/train/network/network.h"

namespace tutti {

/// Not thread-safe.
class TableMicroBatches {
 public:
  /// All arguments must outlive this object. Throws ConfigError if ranks that share tables have
  /// different numbers of micro-batches.
  TableMicroBatches(const Network& network, const ReplicaMap& micro_batches, Executor& executor);

  /// Call after the run of a local micro-batch, while its inputs are bound.
  void take(int local_micro_batch);
  size_t memory_bytes() const;

 private:
  const Network& network_;
  const ReplicaMap& micro_batches_;
  Executor& executor_;
  std::vector<Buffer> kept_;  // by network_.kept
};

}  // namespace tutti
