#pragma once
// rehearse(): tries what can fail before the first step of a run, without running it.

#include <cstdint>

#include "tutti/backend/backend.h"
#include "tutti/comm/cost/machine.h"
#include "tutti/config/config.h"
#include "tutti/train/settings/run_data.h"

namespace tutti::train {

/// The run to rehearse; `ranks` need not exist.
struct RehearsalSpec {
  const config::RunConfig& config;  ///< validated; run.threads chosen
  int ranks = 1;
  int ranks_per_node = 1;  ///< the first so many are on node 0, the next on node 1
  RunData data;
  const backend::Backend& backend;
  const comm::Machine* machine = nullptr;  ///< for a replay
  bool resumes = false;                    ///< from a checkpoint: model.weights is not read
  /// If several processes rehearse together, only the first one warns and reads samples.
  bool first = true;
  double read_timeout_s = 600;  ///< for a batch, as in training
};

/// At most this many samples of each part of the data are read: the first ones, without
/// augmentation.
inline constexpr int64_t kRehearsedSamples = 16;

/// The properties of the rehearsed run.
struct Rehearsal {
  int replicas = 1;
  config::BatchSizes batch{};
  int64_t steps_per_epoch = 0, steps = 0;
  int64_t parameters = 0;
  int64_t samples_read = 0;  ///< over all parts
};

/// Returns the number of replicas in a job of that many ranks, including servers. Throws
/// ConfigError if the configuration does not fit that number. `machine` is null without a replay.
int replicas_of_job(const config::RunConfig& config, int ranks, const comm::Machine* machine);

/// Divides the batch among replicas and ranks, makes the order of the samples, the schedule and the
/// augmentation, builds the model and compiles it as one rank would, without measuring, and reads
/// samples of each part of the data. Writes nothing and does not communicate. Throws the errors
/// that train() would throw.
Rehearsal rehearse(const RehearsalSpec& spec);

}  // namespace tutti::train
