#pragma once
// Finds what an earlier start of a study left in its folder, and lets one study at a time work
// there.

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "tutti/base/folder_lock.h"
#include "tutti/study/size.h"

namespace tutti::study {

/// The resolved configuration of a run: key -> value as TOML.
using Configuration = std::map<std::string, std::string>;

/// The names of files that a study adds to a run's folder.
inline constexpr const char* kCommandFile = "command.sh";
inline constexpr const char* kConsoleFile = "console.log";
inline constexpr const char* kResolvedFile = "config.toml";  ///< written by training

/// Whether a finished record exists: done, or its target missed.
bool is_finished(const std::string& directory);

/// Whether the record says that the run failed.
bool has_failed(const std::string& directory);

/// Whether training should be continued there: a checkpoint exists, and it does not lead to the
/// same end. The cause of a stop may have passed (a node, a disk, a file, a signal), but if a loss
/// or weight was not a number, the same steps would follow from the checkpoint.
bool is_resumable(const std::string& directory);

/// The consequence of another value of a key for an existing run.
enum class OnChange {
  no_matter,    ///< neither the run's results nor its times depend on the key
  may_go_on,    ///< an unfinished run may go on; a finished one does not count
  begins_anew,  ///< an unfinished run cannot go on with the same results
};
using ChangeRule = std::function<OnChange(const std::string& key)>;

struct Difference {
  std::string key, there, now;
  OnChange rule = OnChange::begins_anew;
  std::string text() const;  ///< "run.epochs: 3 there, 5 now"
};

/// Returns the keys in which `there` differs from `now`, and that matter. Without a rule each
/// begins anew.
std::vector<Difference> differences(const Configuration& there, const Configuration& now,
                                    const ChangeRule& rule);

/// Throws ConfigError if a run of `tutti train` lies in `directory`: a study would count it as
/// one of its own.
void refuse_run_of_train(const std::string& directory);

struct RunFolder {
  std::string path;
  int ranks = 0, repeat = 0;
  std::vector<int64_t> spatial = {};
  Size size() const { return {ranks, spatial}; }
};
/// Returns the path of a study's run: runs/n0004-r1, or runs/n0004-s2x2-r1 if ranks share samples.
std::string run_path(const std::string& directory, const Size& size, int repeat);
/// Returns the folders of a study's runs; empty if there is no study.
std::vector<RunFolder> study_runs(const std::string& directory);

/// Returns how many attempts were set aside beside `directory`. Throws IoError.
int count_attempts(const std::string& directory);
/// Renames `directory`, if it exists, to <directory>.attempt-<k>. Throws IoError.
void set_aside(const std::string& directory);

/// Locks the folder, in which one study works at a time. The runs that it starts hold the lock,
/// too: those of a killed study write their checkpoints first, and this call waits for their end up
/// to `patience` seconds. Throws ConfigError naming the other study.
FolderLock lock_study(const std::string& directory, double patience);

}  // namespace tutti::study
