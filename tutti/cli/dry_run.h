#pragma once
// tutti train --dry-run: would this run start?

#include "tutti/cli/config.h"
#include "tutti/cli/launch.h"

namespace tutti {

/// Does everything of a run that can fail before its first step, and leaves no trace: no rank is
/// started, no file written, nothing measured. `ranks` as --ranks, 0: not given. Prints what the
/// run would be and the resolved configuration, as TOML, and returns exit code 0; throws what the
/// run would throw.
int dry_run(const ResolvedConfig& resolved, int ranks, const RankThreads& requested);

/// Whether a folder can be made there and written into; makes one and removes it again. IoError.
void check_output_folder(const std::string& directory);

}  // namespace tutti
