#pragma once
// Relations between the keys of a configuration.

#include "tutti/config/config.h"

namespace tutti {

/// Relations between keys that one row of the table cannot state (an end of the run is given,
/// milestones rise, crop needs pad, ...). Throws ConfigError naming the keys.
void validate(const RunConfig& config);

}  // namespace tutti
