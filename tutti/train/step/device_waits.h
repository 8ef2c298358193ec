#pragma once
// How often the host waits for a device while it trains.

#include <string>
#include <vector>

#include "tutti/train/step/training_step.h"

namespace tutti::train {

/// Something for which the host waits, besides for the step before the last one.
struct HostWaits {
  int64_t times = 0, steps = 1;  ///< that many times in that many steps
  std::string why;
};

/// Returns what the host waits for in a step that a device computes. `dependent_batches`: a batch
/// depends on the predictions for the one before. Log lines, evaluations and checkpoints wait, too.
std::vector<HostWaits> host_waits(const TrainingStepSpec& spec, const Network& network,
                                  bool dependent_batches);

/// Returns a sentence that says the same.
std::string host_waits_text(const std::vector<HostWaits>& waits);

}  // namespace tutti::train
