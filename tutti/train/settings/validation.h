#pragma once
// Checks relations between the keys of a configuration.

#include "tutti/config/config.h"

namespace tutti::train {

/// Checks relations that one row of the table cannot express (an end of the run is given,
/// milestones rise, crop needs pad, ...). Throws ConfigError naming the keys.
void validate(const config::RunConfig& config);

}  // namespace tutti::train
