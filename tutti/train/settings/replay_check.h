#pragma once
// Checks a run that replays the time of a described machine (replay.machine).

#include "tutti/config/config.h"

namespace tutti::train {

/// Throws ConfigError for keys whose effect on times a virtual clock cannot model. Does nothing for
/// a run that is not a replay.
void check_replay(const config::RunConfig& config);

}  // namespace tutti::train
