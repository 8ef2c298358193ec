#pragma once
// Plans a scaling study: a list of training runs over rank counts and repeats, each a command line
// and a directory.

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "tutti/study/run_folder.h"
#include "tutti/study/size.h"
#include "tutti/trace/record.h"

namespace tutti::study {

enum class Mode {
  weak,   ///< the local batch is fixed: the global batch grows with the ranks
  strong  ///< the global batch is fixed: local = global / ranks
};
Mode parse_mode(std::string_view text);  ///< throws ConfigError

/// All inputs of `tutti study`. The cli fills it from flags and from the resolved base
/// configuration.
struct StudyFlags {
  std::string config;  ///< path of the base configuration; may be empty with `collect_only`
  std::vector<Size> ranks = {1, 2};  ///< sizes, any order
  int replay_ranks = 0;  ///< above 0: sizes are replicas; ranks on which a run replays them
  int repeats = 3;       ///< repeat k uses seed + k, the same for every size
  Mode mode = Mode::weak;
  std::string output_dir =
      "study";  ///< study.csv, study.json, report.html and runs/n<ranks>-r<repeat>/
  std::vector<std::string> sets;  ///< further "key=value" settings for every run
  std::string program = "tutti";  ///< the binary that trains
  bool oversubscribe = false;     ///< allow more ranks per core than train starts by default
  bool fresh = false;             ///< run everything again, with all earlier runs set aside
  bool dry_run = false;           ///< print the commands only
  bool collect_only = false;      ///< launch nothing: report every record found under output_dir
  bool json = false;              ///< print study.json instead of tables
  double run_limit_seconds = 0;   ///< a run is stopped after this long; 0 = no limit
  bool require_target = false;    ///< a run that missed the target makes the exit code 3
  std::string command;            ///< command line of the study, for the report
  bool quiet = false;             ///< show failures only
  bool verbose = false;           ///< show the runs' own lines, too
  int columns = 0;                ///< columns of the terminal on stderr; 0: there is none
  size_t runs_after = 0;          ///< unfinished runs of studies that come after this one

  // From the base configuration.
  uint64_t seed = 1;
  int64_t local_batch = 0, global_batch = 0;  ///< [batch]; 0 = not given
  int64_t accumulate = 1;                     ///< batch.accumulate
  int64_t replicas = 0;                       ///< run.replicas; 0 = one per group of ranks
  int threads_per_rank = 0;  ///< run.threads; 0 = chosen once for the whole study, see plan_runs
  int cores = 1;             ///< physical cores that the runs may use
  int64_t epochs = 0;        ///< run.epochs; 0: unknown
  std::optional<trace::Target> target;  ///< null: the target that the records name

  /// Return the resolved configuration with these settings added ("key=value"), and the one in a
  /// file. The cli provides both, and the rule for differences; without them earlier runs are not
  /// compared and the report shows no settings.
  std::function<Configuration(const std::vector<std::string>& sets)> resolve;
  std::function<Configuration(const std::string& path)> read_resolved;
  ChangeRule change_rule;
  /// Whether a run's directory holds a checkpoint from which training would go on. Without it
  /// checkpoints are not examined.
  std::function<bool(const std::string& directory)> has_sound_checkpoint;
};

struct PlannedRun {
  int ranks = 1, repeat = 1;          ///< repeat counts from 1
  std::vector<int64_t> spatial = {};  ///< as in Size
  Size size() const { return {ranks, spatial}; }
  uint64_t seed = 1;
  int64_t local_batch = 0;  ///< per replica
  std::string directory;
  std::vector<std::string> sets;     ///< "key=value": the user's, then the study's own
  std::vector<std::string> command;  ///< argv
};

/// Returns all runs, with every rank count of repeat 1 first, so that an interrupted study still
/// compares sizes. Workers must be equal at every scale, so threads per rank are fixed for the
/// whole study: as given, or cores / largest rank count, at least 1. Throws ConfigError, for
/// example if a global batch is not divisible.
std::vector<PlannedRun> plan_runs(const StudyFlags& flags);

/// Returns the run that this study would make for a size and repeat outside its plan.
PlannedRun plan_another(const StudyFlags& flags, const Size& size, int repeat);

}  // namespace tutti::study
