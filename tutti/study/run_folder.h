#pragma once
// What a study finds in its folder from an earlier start, and who may work there.

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "tutti/base/folder_lock.h"
#include "tutti/study/size.h"

namespace tutti::study {

/// The resolved configuration of a run: key -> value as TOML.
using Configuration = std::map<std::string, std::string>;

/// The names of files that a study writes into a run's folder, beside what training writes.
inline constexpr const char* kCommandFile = "command.sh";
inline constexpr const char* kConsoleFile = "console.log";
inline constexpr const char* kResolvedFile = "config.toml";  ///< written by training

/// Whether a finished record is there: done, or its target missed.
bool is_finished(const std::string& directory);

/// Whether the record says that the run failed.
bool has_failed(const std::string& directory);

/// Whether training should go on there: a checkpoint exists, and it does not lead to the same end.
/// What stopped the run may pass (a node, a disk, a file, a signal), but where a loss or weight was
/// no number, the same steps would follow from the checkpoint.
bool is_resumable(const std::string& directory);

/// What another value of a key means for a run that is there.
enum class OnChange {
  no_matter,    ///< neither its results nor its times depend on the key
  may_go_on,    ///< an unfinished run may go on; a finished one was another
  begins_anew,  ///< an unfinished run would not go on as it was
};
using ChangeRule = std::function<OnChange(const std::string& key)>;

struct Difference {
  std::string key, there, now;
  OnChange rule = OnChange::begins_anew;
  std::string text() const;  ///< "run.epochs: 3 there, 5 now"
};

/// The keys in which `there` differs from `now`, and that matter. Without a rule each begins anew.
std::vector<Difference> differences(const Configuration& there, const Configuration& now,
                                    const ChangeRule& rule);

/// A study beside a run would count it as one of its own. Throws ConfigError where one lies.
void refuse_run_of_train(const std::string& directory);

struct RunFolder {
  std::string path;
  int ranks = 0, repeat = 0;
  std::vector<int64_t> spatial = {};
  Size size() const { return {ranks, spatial}; }
};
/// Of a study in `directory`: runs/n0004-r1, or runs/n0004-s2x2-r1 where ranks share samples.
std::string run_path(const std::string& directory, const Size& size, int repeat);
/// The folders of a study's runs; empty where no study lies.
std::vector<RunFolder> study_runs(const std::string& directory);

/// How many attempts were set aside beside `directory`. Throws IoError.
int count_attempts(const std::string& directory);
/// Renames `directory`, if it exists, to <directory>.attempt-<k>. Throws IoError.
void set_aside(const std::string& directory);

/// One study works in a folder at a time. The runs that it starts hold the lock, too: those of a
/// killed study write their checkpoints first, and their end is awaited for `patience` seconds.
/// Throws ConfigError naming the other study.
FolderLock lock_study(const std::string& directory, double patience);

}  // namespace tutti::study
