#pragma once
// Checks that the checkpoints in the folder of a resume belong to the run.

#include "tutti/keep/run_folder.h"

namespace tutti::keep {

/// Throws ConfigError in two cases. The newest checkpoint in place.checkpoints is of another run
/// than the one in place.directory. Or there is none (place.resume is empty), although the
/// record of that run names one: its disk may be absent, and a new run would take the place of the
/// old one.
void check_whose_checkpoint(const RunPlace& place);

}  // namespace tutti::keep
