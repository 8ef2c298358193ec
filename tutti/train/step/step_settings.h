#pragma once
// What a configuration says of a step, for train and for those who tell beforehand what it needs.

#include "tutti/config/config.h"
#include "tutti/train/step/training_step.h"

namespace tutti {

/// But for what a running job knows alone: seed, noise, steps_compared. `map`: of
/// gradients_of_step() replicas to groups of ranks. `has_clock`: the gradients come in the order of
/// a replay's machine.
TrainingStepSpec step_spec(const RunConfig& config, NetworkSpec network, const ReplicaMap& map,
                           const PartGrid& grid, bool has_clock);

}  // namespace tutti
