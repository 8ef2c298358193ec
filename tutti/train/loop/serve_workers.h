#pragma once
// Ranks that only serve weights (sync.server_ranks): the other end of a run's workers.

#include "tutti/train/loop/trainer.h"

namespace tutti {

/// What a rank that serves does instead of train(): serves the rounds of the workers until they
/// dismiss it. `spec.communicator` has the servers alone, `spec.job` the workers before them.
RunResult serve_workers(const TrainerSpec& spec);

}  // namespace tutti
