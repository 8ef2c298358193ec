#pragma once
// The folder of a run. A folder holds one run: a new one does not begin where another lies, and two
// never write at once. docs/runs.md tells a user what this file does.

#include <filesystem>
#include <string>
#include <vector>

#include "tutti/base/error.h"
#include "tutti/base/folder_lock.h"
#include "tutti/comm/communicator.h"
#include "tutti/config/config.h"

namespace tutti {

/// Its name in a run's folder. It does not say where that is: moved, copied or set aside, it is
/// still the file of the run beside it.
inline constexpr const char* kConfigFile = "config.toml";

/// IoError that an output folder cannot be made, with the reason; it looks whether the working
/// folder is there.
[[noreturn]] void refuse_output_folder(const std::filesystem::path& folder,
                                       const std::string& reason);

/// Where a run lies and what it continues; the same on every rank.
struct RunPlace {
  std::string directory;    ///< run.output_dir, or the one that was found for it
  std::string checkpoints;  ///< the folder of its checkpoints
  std::string resume;       ///< the checkpoint to go on from, verified; empty: none
  std::string checksum;     ///< of that checkpoint's manifest
  std::string run_id;       ///< one for each run, kept over its resumes
  bool goes_on = false;     ///< the folder holds the beginning of this run: its record is continued

  bool operator==(const RunPlace&) const = default;
};

/// What a run asks for.
struct RunFolderRequest {
  std::string output_dir;     ///< run.output_dir; empty: the next free one of runs/0001, ...
  std::string checkpoints;    ///< checkpoint.dir; empty: output_dir/checkpoints
  std::string resume;         ///< checkpoint.resume
  bool fresh = false;         ///< a run that lies there is set aside as NAME.1, NAME.2, ...
  std::string base = "runs";  ///< where numbered folders lie
  double patience = 10;       ///< seconds that a resume waits for the run before it to end
};

RunFolderRequest run_folder_request(const RunConfig& config, bool fresh);

/// The folder of the run whose config.toml this is; empty where it is no run's.
std::string folder_of_config(const std::filesystem::path& file);

/// What that file says of checkpoint.dir: a folder within the run's goes with it.
std::string own_checkpoints(const std::string& dir, const RunPlace& place);

/// Removes locks beside which nothing lies in folders of the place, and of these the numbered ones.
/// For the holder of the locks.
void remove_unused(const RunPlace& place);

/// Held by every rank while it trains; rank 0 holds the locks.
class RunFolder {
 public:
  /// Collective: rank 0 finds, locks, cleans and, for a resume, verifies what all ranks have alike,
  /// each rank its share of what ranks have written; all get the place. Throws
  /// ConfigError where another run lies or is under way, and where there is something to resume
  /// from but nothing of it is valid.
  RunFolder(comm::Communicator& communicator, const RunFolderRequest& request);
  /// A run that was refused before its first step leaves nothing.
  ~RunFolder() {
    if (!locks_.empty()) remove_unused(place_);
  }
  RunFolder(const RunFolder&) = delete;
  RunFolder& operator=(const RunFolder&) = delete;
  const RunPlace& place() const { return place_; }

 private:
  std::vector<FolderLock> locks_;  // before place_: taken while that is found out
  RunPlace place_;
};

/// A run lies in the folder where another is to begin.
class HoldsRun : public ConfigError {
 public:
  using ConfigError::ConfigError;
};

/// Where a run would lie and what it would continue, or why it would be refused (HoldsRun); without
/// a lock, and without making, renaming or removing anything.
RunPlace preview_run_folder(const RunFolderRequest& request);

/// What rank 0 does, with the locks that it took.
RunPlace take_run_folder(const RunFolderRequest& request, std::vector<FolderLock>& locks);

/// The lock of a run's folder, and of a folder of checkpoints elsewhere.
FolderLock lock_run(const std::filesystem::path& folder, double patience);

/// Whether a record or a checkpoint lies there.
bool holds_run(const std::filesystem::path& directory, const std::filesystem::path& checkpoints);

}  // namespace tutti
