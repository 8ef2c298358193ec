#pragma once
// Derives a step from a configuration, for training and for tools that predict its needs.

#include "tutti/config/config.h"
#include "tutti/train/step/training_step.h"

namespace tutti::train {

/// Sets everything except what only a running job knows: seed, noise, steps_compared. `map` maps
/// gradients_of_step() replicas to groups of ranks. `has_clock`: the gradients come in the order of
/// a replay's machine.
TrainingStepSpec step_spec(const config::RunConfig& config, NetworkSpec network,
                           const exchange::ReplicaMap& map, const split::PartGrid& grid,
                           bool has_clock);

}  // namespace tutti::train
