#pragma once
// Runs a study's training runs one after another as child processes.

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "tutti/study/run_folder.h"
#include "tutti/study/run_watch.h"
#include "tutti/study/sweep.h"

namespace tutti::study {

enum class Outcome {
  finished,  ///< ran now, and its record ends with done or target_missed
  kept,      ///< had finished before; not run again
  failed,    ///< ended in another way; always reported
  stopped    ///< the study was asked to stop during this run, or before it started
};

struct LaunchResult {
  PlannedRun run;
  Outcome outcome = Outcome::failed;
  std::string reason{};      ///< reason of a failure, in one line
  int earlier_attempts = 0;  ///< directories of earlier, unfinished or replaced attempts
};

struct LaunchOptions {
  double run_limit_seconds = 0;  ///< 0 = none. At the limit SIGTERM, and SIGKILL a grace time later
  double grace_seconds = 30;
  bool show_output = false;  ///< print the runs' own lines, too
  StudyDisplay::Settings display{};
  std::optional<trace::Target> target{};
  int64_t epochs = 0;     ///< epochs of a run, for the display; 0: unknown
  size_t runs_after = 0;  ///< runs of later studies, for the estimate of remaining time
  /// `wanted` returns the configuration that a run would have now, `found` that of an earlier run's
  /// `config.toml`; `rule` says what a difference means (differences()). Without the first two a
  /// finished run is kept without comparison.
  std::function<Configuration(const PlannedRun&)> wanted{};
  std::function<Configuration(const std::string& path)> found{};
  ChangeRule rule{};
  /// Whether a checkpoint in a run's directory can be read. Without it all count as sound.
  std::function<bool(const std::string& directory)> sound{};
};

/// Runs what is not finished yet. A run's directory gets command.sh and console.log beside the
/// files of training. An unfinished attempt with a checkpoint is continued if the rule allows its
/// configuration to change so, is_resumable() agrees and a checkpoint is sound. Any other
/// unfinished attempt, and with `fresh` every earlier one, is renamed to <directory>.attempt-<k>,
/// never deleted. A failed run does not end the study, and runs that failed before come after all
/// others, so that they do not delay them. A stop signal is passed on to the running child, and no
/// further run starts. Throws ConfigError if a finished run in the same place had another
/// configuration that matters.
std::vector<LaunchResult> launch(const std::vector<PlannedRun>& runs, const LaunchOptions& options);

/// Throws ConfigError if a finished run in the place of one of these had another configuration that
/// matters.
void refuse_changed(const std::vector<PlannedRun>& runs, const LaunchOptions& options);

/// Returns where the configuration in the folder of `run` differs from the one that it would have
/// now, if `options` provides both.
std::vector<Difference> changed(const PlannedRun& run, const LaunchOptions& options);

}  // namespace tutti::study
