#pragma once
// Whose checkpoints lie in the folder that a resume looks into.

#include "tutti/keep/run_folder.h"

namespace tutti {

/// Throws ConfigError where the newest checkpoint in place.checkpoints is of another run than the
/// one in place.directory, and where there is none (place.resume is empty), though the record of
/// that run names one: its disk may not be there, and a run that began anew would take its place.
void check_whose_checkpoint(const RunPlace& place);

}  // namespace tutti
