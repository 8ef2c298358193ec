#pragma once
// tutti train --dry-run: tests whether a run would start.

#include <string>
#include <system_error>
#include <vector>

#include "tutti/cli/config/config.h"
#include "tutti/cli/job/launch.h"
#include "tutti/config/run_settings.h"
#include "tutti/keep/checkpoint.h"

namespace tutti::cli {

/// Flags of `tutti train` that a dry run uses, besides the configuration.
struct DryRunFlags {
  int ranks = 0;  ///< as --ranks, 0: not given
  RankThreads requested{};
  bool fresh = false;
  std::vector<std::string> resume_anyway{};
};

/// Does everything of a run that can fail before its first step, and leaves no trace: no rank is
/// started, no file written, nothing measured. Prints a description of the run and the resolved
/// configuration, as TOML, and returns exit code 0; throws the errors of the run.
int dry_run(const ResolvedConfig& resolved, const DryRunFlags& flags);

/// Takes the data's identity from the checkpoint, so that it is not compared. A checkpoint of an
/// earlier version may lack it.
void take_data_content(const keep::CheckpointInfo& before, config::RunSettings& settings);

/// Checks that a folder can be made there and written into; makes one and removes it again. Throws
/// IoError. Returns why there can be no symbolic link in it, which a run does without.
std::error_code check_output_folder(const std::string& directory);

}  // namespace tutti::cli
