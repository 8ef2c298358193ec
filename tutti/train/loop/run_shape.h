#pragma once
// RunShape: the size of a run and its layout on the job's ranks. All of it follows from the
// configuration, the data and the number of ranks.

#include "tutti/comm/communicator.h"
#include "tutti/config/config.h"
#include "tutti/data/pipeline/sampler.h"
#include "tutti/exchange/replicas.h"
#include "tutti/split/grid.h"
#include "tutti/train/network/schedule.h"
#include "tutti/train/settings/run_data.h"

namespace tutti::train {

struct RunShape {
  /// `replay`: the run simulates a machine's time. Throws ConfigError for inconsistent numbers.
  RunShape(const config::RunConfig& config, const data::Dataset& train, bool replay,
           comm::Communicator& communicator);

  const split::PartGrid grid;
  const int devices;                    ///< that hold replicas
  const int gradients;                  ///< per step: fewer than devices where a quorum is enough
  const exchange::ReplicaMap replicas;  ///< computed replicas, on groups of ranks that share them
  const exchange::ReplicaMap workers;   ///< replicas, or their parts; each has its own statistics
  const int accumulate;                 ///< micro-batches per replica and step
  const exchange::ReplicaMap
      batches;  ///< the workers' micro-batches: each has a gradient in every step
  const config::BatchSizes batch;
  const data::Sampler sampler;
  const int64_t total_steps;
  const LearningRateSchedule schedule;

  int64_t steps_per_epoch() const { return sampler.steps_per_epoch(); }
  /// Returns the map of statistics among ranks that have the same kind of them.
  const exchange::ReplicaMap& with_statistics() const {
    return grid.stages() > 1 ? replicas : workers;
  }
};

}  // namespace tutti::train
