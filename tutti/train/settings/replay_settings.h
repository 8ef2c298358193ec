#pragma once
// What a run cannot be told that has the time of a machine that is not at hand (replay.machine).

#include "tutti/config/config.h"

namespace tutti {

/// ConfigError for keys that would change times which a virtual clock does not know. Nothing for a
/// run that is no replay.
void check_replay(const RunConfig& config);

}  // namespace tutti
