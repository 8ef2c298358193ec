#pragma once
// rehearse(): what can fail before the first step of a run, tried without running it.

#include <cstdint>

#include "tutti/backend/backend.h"
#include "tutti/comm/cost/machine.h"
#include "tutti/config/config.h"
#include "tutti/train/settings/run_data.h"

namespace tutti {

/// What a run would be; `ranks` need not be there.
struct RehearsalSpec {
  const RunConfig& config;  ///< validated; run.threads chosen
  int ranks = 1;
  int ranks_per_node = 1;  ///< the first so many are on node 0, and so on
  RunData data;
  const Backend& backend;
  const comm::Machine* machine = nullptr;  ///< of a replay
  bool resumes = false;                    ///< from a checkpoint: model.weights is not read
  /// Of processes that rehearse side by side, the first one warns and reads samples.
  bool first = true;
  double read_timeout_s = 600;  ///< for a batch, as while training
};

/// Of each part of the data, at most so many are read: the first ones, without augmentation.
inline constexpr int64_t kRehearsedSamples = 16;

/// What the run would have been.
struct Rehearsal {
  int replicas = 1;
  BatchSizes batch{};
  int64_t steps_per_epoch = 0, steps = 0;
  int64_t parameters = 0;
  int64_t samples_read = 0;  ///< of all parts
};

/// The replicas of a job of so many ranks, servers among them. ConfigError where they cannot be
/// these ranks' by what the configuration says. `machine`: null without a replay.
int replicas_of_job(const RunConfig& config, int ranks, const comm::Machine* machine);

/// Shares out the batch among replicas and ranks, makes the order of the samples, the schedule and
/// the augmentation, builds the model and compiles it as one rank would, without measuring, and
/// reads samples of each part of the data. Writes nothing and talks to nobody. Throws what train()
/// would throw.
Rehearsal rehearse(const RehearsalSpec& spec);

}  // namespace tutti
