#pragma once
// Runs ranks that only serve weights (sync.server_ranks), the counterpart of a run's workers.

#include "tutti/train/loop/trainer.h"

namespace tutti::train {

/// Runs instead of train() on a rank that serves: serves the workers' rounds until they dismiss it.
/// `spec.communicator` contains only the servers, `spec.job` first the workers and then the
/// servers.
RunResult serve_workers(const TrainerSpec& spec);

}  // namespace tutti::train
