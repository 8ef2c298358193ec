#pragma once
// RunShape: how large a run is and how it is laid out on the job's ranks. All of it follows from
// the configuration, the data and the number of ranks.

#include "tutti/comm/communicator.h"
#include "tutti/config/config.h"
#include "tutti/data/pipeline/sampler.h"
#include "tutti/exchange/replicas.h"
#include "tutti/split/grid.h"
#include "tutti/train/network/schedule.h"
#include "tutti/train/settings/run_data.h"

namespace tutti {

struct RunShape {
  /// `replay`: a machine's time is told. Throws ConfigError for numbers that do not fit each other.
  RunShape(const RunConfig& config, const data::Dataset& train, bool replay,
           comm::Communicator& communicator);

  const PartGrid grid;
  const int devices;          ///< that replicas are on
  const int gradients;        ///< of a step: fewer than devices where a quorum is enough
  const ReplicaMap replicas;  ///< that are computed, on groups of ranks that share them
  const ReplicaMap workers;   ///< who each have statistics: replicas, or their parts
  const int accumulate;       ///< micro-batches of a replica in a step
  const ReplicaMap batches;   ///< micro-batches of the workers: each has a gradient in every step
  const BatchSizes batch;
  const data::Sampler sampler;
  const int64_t total_steps;
  const LearningRateSchedule schedule;

  int64_t steps_per_epoch() const { return sampler.steps_per_epoch(); }
  /// The epoch, from 1, in which a step lies that is done.
  int64_t epoch_of(int64_t step) const { return (step - 1) / steps_per_epoch() + 1; }
  /// Who have statistics of their own among those with the same ones.
  const ReplicaMap& with_statistics() const { return grid.stages() > 1 ? replicas : workers; }
};

}  // namespace tutti
