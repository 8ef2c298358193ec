#pragma once
// TableMicroBatches: the values from all micro-batches of a step that the update of tables reads
// (TrainingGraph::kept). A single micro-batch is read in place; with several, each one's values are
// copied when it is done.

#include <vector>

#include "tutti/device/cpu/buffer.h"
#include "tutti/exchange/replicas.h"
#include "tutti/plan/run/executor.h"
#include "tutti/train/network/network.h"

namespace tutti::train {

/// Not thread-safe.
class TableMicroBatches {
 public:
  /// All arguments must outlive this object. Throws ConfigError if ranks that share tables have
  /// different numbers of micro-batches.
  TableMicroBatches(const Network& network, const exchange::ReplicaMap& micro_batches,
                    plan::Executor& executor);

  /// Call after the run of a local micro-batch, while its inputs are bound.
  void take(int local_micro_batch);
  size_t memory_bytes() const;

 private:
  const Network& network_;
  const exchange::ReplicaMap& micro_batches_;
  plan::Executor& executor_;
  std::vector<device::Buffer> kept_;  // by network_.kept
};

}  // namespace tutti::train
