#pragma once
// Runs a study's training runs one after another as child processes.

#include <string>
#include <vector>

#include "tutti/study/sweep.h"

namespace tutti::study {

enum class Outcome {
  finished,  ///< ran now, and its record ends with done or target_missed
  kept,      ///< was finished before; not run again
  failed,    ///< ended in another way; reported, never hidden
  stopped    ///< the study was asked to stop (SIGINT, SIGTERM) while it ran, or before its turn
};

struct LaunchResult {
  PlannedRun run;
  Outcome outcome = Outcome::failed;
  std::string reason{};  ///< of a failure, with the last lines that the run printed
  int earlier_attempts =
      0;  ///< directories of earlier, unfinished or replaced attempts beside this one
};

struct LaunchOptions {
  bool fresh = false;
  double run_limit_seconds = 0;  ///< 0 = none. Then SIGTERM, and SIGKILL a grace time later
  double grace_seconds = 30;
  bool show_output = true;  ///< print the run's lines as they come, each with the run's name; they
                            ///< always go to console.log
};

/// Runs what is not finished yet. A run's directory gets command.sh and console.log beside what
/// training writes. An unfinished or (with `fresh`) replaced attempt is renamed to
/// <directory>.attempt-<k>, never deleted. A failed run does not end the study. SIGINT or SIGTERM
/// is passed on to the running child, and no further run starts. Throws ConfigError when a finished
/// run in the same place was made by another command.
std::vector<LaunchResult> launch(const std::vector<PlannedRun>& runs, const LaunchOptions& options);

/// Of what remains in `directory`: whether a finished record is there.
bool is_finished(const std::string& directory);

}  // namespace tutti::study
