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
  kept,      ///< was finished before; not run again
  failed,    ///< ended in another way; reported, never hidden
  stopped    ///< the study was asked to stop while it ran, or before its turn
};

struct LaunchResult {
  PlannedRun run;
  Outcome outcome = Outcome::failed;
  std::string reason{};  ///< of a failure, in one line
  int earlier_attempts =
      0;  ///< directories of earlier, unfinished or replaced attempts beside this
};

struct LaunchOptions {
  double run_limit_seconds = 0;  ///< 0 = none. Then SIGTERM, and SIGKILL a grace time later
  double grace_seconds = 30;
  bool show_output = false;  ///< print the runs' own lines, too
  StudyDisplay::Settings display{};
  std::optional<Target> target{};
  int64_t epochs = 0;     ///< of a run, for the display; 0: unknown
  size_t runs_after = 0;  ///< that come after these, for the time that is left
  /// The configuration that a run would have now, and the one that a file `config.toml` of an
  /// earlier run holds, and what a difference means (differences()). Without the first two a
  /// finished run is kept unseen.
  std::function<Configuration(const PlannedRun&)> wanted{};
  std::function<Configuration(const std::string& path)> found{};
  ChangeRule rule{};
  /// Whether one of the checkpoints in a run's directory can be read. Without it all count as
  /// sound.
  std::function<bool(const std::string& directory)> sound{};
};

/// Runs what is not finished yet. A run's directory gets command.sh and console.log beside what
/// training writes. An unfinished attempt that has a checkpoint goes on from it where the rule lets
/// its configuration change so, unless is_resumable() knows better or none is sound; any other
/// unfinished and (with `fresh`) every earlier attempt is renamed to <directory>.attempt-<k>, never
/// deleted. A failed run does not end the study, and one that had failed before comes after all
/// others, so that it does not keep them from their turn. A stop signal is passed on to the running
/// child, and no further run starts. Throws ConfigError when a finished run in the same place had
/// another configuration that matters.
std::vector<LaunchResult> launch(const std::vector<PlannedRun>& runs, const LaunchOptions& options);

/// ConfigError where a finished run in the place of one of these had another configuration that
/// matters.
void refuse_changed(const std::vector<PlannedRun>& runs, const LaunchOptions& options);

/// Where the configuration in the folder of `run` is not the one that it would have now, as far as
/// `options` know both.
std::vector<Difference> changed(const PlannedRun& run, const LaunchOptions& options);

}  // namespace tutti::study
